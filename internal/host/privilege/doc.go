// Package privilege lets a program started by root run as another user, with a few of root's capabilities.
package privilege
