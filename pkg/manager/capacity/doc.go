// Package capacity keeps the account of one worker's nodes that placement decides by.
//
//	informers (slim Nodes, Pods) ──> SetNode, SetPod, … ──┐
//	                                                      ├─> Ledger ──> Free: Capacity
//	manager, as it places a Job  ──> Reserve, Release ────┘        ├──> Totals, Unschedulable
//	                                                               └──> callback: there is more room
//
// Every change costs its own size, not the cluster's: a Pod's event touches its node, a reservation
// goes over the nodes once. A Capacity shares all nodes that didn't change with the one before.
//
// # Claims
//
// A Job placed a moment ago has no Pods yet, or Pods that no node has yet. Its claim holds room for
// them: want (Reserve's count) minus the Job's Pods that are bound to a node. Pods of others that
// wait for a node claim room in the same way, one each, but for those with scheduling gates.
//
// Claims are held on particular nodes, so that each later Job is tried against what is really left:
// nodes are kept evenly free, as the scheduler does by default. When a Pod is bound elsewhere than
// thought, its claim gives back a slot, and claims that no longer fit on a node move. A claim that
// fits nowhere waits, and takes room when there is some, before Jobs that aren't placed yet see it.
//
// # More room
//
// The callback is called when room grew anywhere, or when the nodes or what lasts on them changed,
// at most once until the next call of Free. A caller that wants no such news to be lost makes known
// that a Job waits before it takes the Capacity that the Job is tried against.
//
// # Trade-offs
//
// The account doesn't repeat the scheduler: see package placement for what isn't modelled. A Pod
// that is being deleted keeps its room until it has ended, but isn't one of its Job's any more: the
// Job will want another. Reservations are by the Job's name, because they are made before the
// mirror exists.
package capacity
