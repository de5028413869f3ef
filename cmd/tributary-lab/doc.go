// Command tributary-lab runs programs in the lab of package lab, and measures downloaders there side by side. It is a
// tool for developers: it needs root and Linux, and is in no package.
package main
