// Package supervise runs a command so that nothing of it is left when it ends, or when the process that wanted it is killed.
//
// Start starts the supervisor, a process that starts the command and waits for it (Main). They are joined by a pipe. Over it go the
// word to start the command, and signals for it; its end tells the supervisor that the other process is gone, however that happened. The supervisor is
// the reaper of all descendants (PR_SET_CHILD_SUBREAPER in prctl(2)), so it finds those that the command leaves in the
// background, too, and ends them: they would go on to use a port that another user of the machine could take by then.
package supervise
