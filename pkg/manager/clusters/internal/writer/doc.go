// Package writer sees to it that one manager writes to a worker: the leader of one hub.
//
// A copy of a hub, started from a backup of its etcd, has the hub's origin, its credentials and its
// leader's Lease. What it doesn't have is what the hub has written since:
//
//	hub: Lease jobferry-writer         a Term for each leader, with a count that grows while it leads
//	worker: Lease jobferry-writer-ORIGIN   the Term and the count of the leader that renewed it last
//
// A leader reads the Terms that were before its own, then adds it. In a worker it takes over at
// once from a Term that its hub knows with that count or a higher one: that leader's time is over,
// as the hub has one leader. Any other holder is of another hub. It's waited for, as long as it
// renews the Lease, and for workerLostTimeout after that, unless an admin says otherwise. That the
// worker refuses the Lease meanwhile changes nothing.
//
// The hub's Lease is written before any worker's: a hub knows each count that its leaders have
// used.
package writer
