/**
 * What the app decides, without Android: which networks the daemon may use, what it is told, how its process is kept
 * running, and how a file is downloaded through it. Everything here runs in a plain JVM.
 */
package io.github.tributary.core;
