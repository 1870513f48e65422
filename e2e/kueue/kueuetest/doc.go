// Package kueuetest is the language of the tests of Jobferry with Kueue, whose manager package
// program runs.
//
//	f := kueuetest.For(t)                       // a hub with Kueue, and a namespace of this test with Jobferry's label
//	f.RunManager()
//	f.Register("w1", "w2")
//	f.Apply(f.Hub, f.NS, queues)                // ResourceFlavors, ClusterQueues, LocalQueues as YAML
//	f.SubmitTo("team-a", "pi")
//	f.WorkloadUntil("pi", kueuetest.Admitted)
package kueuetest
