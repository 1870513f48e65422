// Package kueuetest runs Kueue's manager, the real one, beside a hub of the rig, and is the test
// language for what Jobferry does with it.
//
//	f := kueuetest.For(t)                       // a hub with Kueue, and a namespace of this test with Jobferry's label
//	f.RunManager()
//	f.Register("w1", "w2")
//	f.Apply(f.Hub, f.NS, queues)                // ResourceFlavors, ClusterQueues, LocalQueues as YAML
//	f.SubmitTo("team-a", "pi")
//	f.WorkloadUntil("pi", kueuetest.Admitted)
//
// # What runs
//
//	CRDs, webhooks ──> hub's API server <──> Kueue (a component of the hub; Kill and Start work)
//	(from Kueue's module)     │                 ▲
//	Service kueue-webhook-service ──────────────┘ an ExternalName: localhost
//	Secret kueue-webhook-server-cert ──> files, as a kubelet would mount them
//
// Kueue makes its own certificates and spreads them, as in an installation by its manifests; the
// rig plays the kubelet, which gives them to the process as files. The CRDs and webhooks are those
// of the module that the program is built from; only the webhooks' port is put in.
//
// # Words
//
//   - book: who has how much quota, followed by a watch of all Workloads; it tells when a cohort had more than its own.
package kueuetest
