// Package privilege lets a program that root starts run as another user, who keeps a few of root's capabilities.
package privilege
