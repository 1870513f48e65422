// Package kubelet is the part of a kubelet that a worker's API server calls: logs of containers,
// commands in them, and connections to their ports. kwok simulates the rest of the nodes. It has
// such a server of its own, but one that reads logs from files that somebody would have to write
// for each Pod, and that never ends a log that is followed.
//
//	pods/log, exec, attach, portforward ──▶ kube-apiserver ──▶ Server ──▶ Pod, read from the API server ──▶ Lines
//	                                                             └──────▶ a process on this machine, or an echo
//
// # What containers say
//
// A line when they start, one each Tick while they run, and one when they end, with a time each.
// All is computed from the Pod's status: no line is kept anywhere. As times in a status are whole
// seconds, a log that is followed may have up to a second's lines more than the same log has later.
//
// # What commands do
//
// They run on this machine, as the user of the tests, with JOB_COMPLETION_INDEX and HOSTNAME as in
// the Pod. There is no terminal: with tty they run all the same.
//
// # What they answer
//
// Who attaches to a container, or connects to any port of a Pod, is told which one it is, and hears
// what they say.
package kubelet
