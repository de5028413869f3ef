// Package lanes carries streams of bytes over several connections at once, between two ends that both run it. A lane is
// one connection that delivers in order; a stream's bytes may take any lane. The package is PURE: a [Mux] gets the time
// and the kernel's figures for each lane, and returns the bytes to write next. Both ends of the relay and its tests
// drive the same code.
//
// Sending. Frames are numbered per lane, and the receiver acknowledges how many arrived over each. So the sender knows
// which bytes a lane owes, and sends them again over other lanes when it falls silent. A lane takes bulk data only
// while little of it is queued in the network (lane.limit), and not if the faster lanes will have finished everything
// before this one would deliver its next frame (Earliest Completion First). Small messages go first, over the lane
// where they arrive first.
//
// Invariants: every byte is read once and in order; a stream's sender stays within the receiver's window; the data held
// for reordering stays below the sum of the windows.
package lanes
