// Package archive packs and unpacks the tar streams of kubectl jobferry cp. Who writes a stream
// that is unpacked may be hostile: the container, the worker, whoever has changed one of them.
//
//	container's tar ──▶ Unpack ──▶ os.Root, one directory of the user's
//	user's files ──▶ Pack ──▶ container's tar
//
// # What a hostile stream can do
//
//   - Only what the user named is written: a member has the name that was asked for, or is below
//     it. An os.Root keeps every path inside of the directory, also through symbolic links that
//     were there before.
//   - Only files and directories are made, with permissions and nothing else: no symbolic or hard
//     links, no devices, no setuid. Skipped lists what was left out.
//   - Bytes and the number of members are bounded by Limits: bytes as they are written, since a
//     sparse file is small in the stream.
//
// # Trade-offs
//
// Hard links are left out, too: a link to a file that was there before would let later bytes of the
// stream reach it under another name. A container has few of them, and Skipped names them.
package archive
