// Package kueuetest runs Kueue's real manager beside a hub of the rig, and is the language of the
// tests of Jobferry with Kueue.
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
// Kueue makes and injects its own certificates, as in an installation by its manifests. The rig
// gives them to the process as files, as a kubelet would. The CRDs and webhooks are those of the
// module that the program is built from, with another port of the webhooks.
package kueuetest
