// Package partial decides which partial files are Tributary's own, how many bytes of one may be resumed, and whether a
// file is a complete download. `tributary get`, the downloads of RPC and those of the app ask it.
//
// The name, the owner and the mode of a file prove nothing: every browser writes files of its user, under names that
// servers choose. So each partial file has a claim in the user's state folder, which no server can name. A claim is
// found by the path of its file, and is valid only for this one file:
//
//   - its inode and birth time (and in the same boot, its device) are those of the file that was created for the
//     download. A copy, a restored backup or a new file of the same name differs in them, even if it got the old inode;
//   - its status has not changed since Tributary last wrote to it. The kernel sets this time, and no program can choose
//     it. If the process was killed between a write and its record, the file may have changed up to a second later than
//     the claim; after a power failure, which may lose the last writes to either, up to two minutes;
//   - it has at least the bytes that the claim counts.
//
// A file system without birth times (NFS, many in user space) is left with inode, device and the time of the change; if
// it tells that time only in seconds (ext3), nothing is resumed. FAT makes inodes up when it is mounted, so a download
// that ended in good order is recognized without.
//
// The first line of a claim counts the bytes without a gap, and is overwritten in place around each write. So a process
// that is killed loses only the bytes beyond the first gap. The rest is replaced as a whole.
//
// A file is a complete download if its claim said so before the file got its name, and if it still has this identity
// and size.
//
// Claims are small, and the oldest are removed when there are many, or after half a year without use.
//
// Reasons: docs/decisions/claims.md.
package partial
