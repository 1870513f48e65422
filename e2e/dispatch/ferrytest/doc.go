// Package ferrytest is the test language for jobferry-manager on real API servers, on top of
// package rigtest.
//
//	func TestPi(t *testing.T) {
//		f := ferrytest.For(t)                 // the cluster named "hub", and a namespace of this test in it
//		f.RunManager()                        // in this process, until the test ends
//		f.Register("w1", "w2")
//		f.Submit("pi", rigtest.RunFor(time.Second))
//		f.MirrorUntil(f.AssignedWorker("pi"), "pi", rigtest.Complete)
//		f.HubJobUntil("pi", rigtest.Complete)
//	}
//
// # Who runs what
//
// A hub has one manager at a time. Tests that can share one are subtests of a test that runs it,
// and call For on their own; they run in parallel. Tests that kill it or break a worker's network
// are not parallel, so that they have the clusters to themselves.
//
// # Where Jobs go
//
// Workers are registered with the labels "name" and "pool". Submit sends Jobs to the pool "main",
// which are all workers but those that are registered otherwise; OnWorker sends one to a single
// worker.
//
// # Words
//
//   - ferry: a hub with its manager and workers, as one test sees it.
//   - process: jobferry-manager as a process of its own, which can be killed.
//   - liar: a proxy in front of a worker's API server that changes what it says of a Job's status.
package ferrytest
