// Package supervise runs a command and ends all of its processes when it exits, or when the process that started it is
// killed.
//
// Start starts the supervisor, a process that starts the command and waits for it (Main). A pipe connects the two: it
// carries the message to start the command, and signals for it. When the pipe closes, the supervisor knows that the
// other process is gone, however that happened. The supervisor is the reaper of all descendants (PR_SET_CHILD_SUBREAPER
// in prctl(2)), so it also finds processes that the command leaves in the background, and ends them: otherwise they
// would continue to use a port that another user of the machine could have taken by then. The process that started the
// supervisor is a reaper, too: if the supervisor is killed, it ends them.
//
// Reasons: docs/decisions/supervisor.md.
package supervise
