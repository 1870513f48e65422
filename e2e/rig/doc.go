// Package rig starts and stops whole Kubernetes clusters as processes on this machine, for tests,
// benchmarks and the demo. The parts are real: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler; only the nodes are simulated, by kwok.
//
//	hub, err := rig.Start(ctx, rig.Options{Name: "hub"})
//	defer hub.Stop()
//	workers, err := rig.StartAll(ctx,
//		rig.Options{Name: "w1", Nodes: []rig.Nodes{{Count: 3, CPU: "16"}}},
//		rig.Options{Name: "w2", Nodes: []rig.Nodes{{Count: 1}}, FaultProxy: true, Release: "1.34"})
//
//	hub.Kubeconfig()                     // a file; KubeconfigBytes() is what goes into a Secret
//	hub.RESTConfig(), hub.Client()       // administrator's clients, without a rate limit
//	workers[1].ProxyKubeconfigBytes()    // the way through the fault-injecting proxy
//	workers[1].Proxy().BlackHole()       // ... Heal()
//	workers[0].Component("kube-apiserver").Kill() // ... Start(), and workers[0].Ready(ctx)
//	workers[0].Component("kube-apiserver").SetClock(-time.Minute)
//
// In tests, one package shares one set of clusters (see Main and For): starting takes seconds, a
// namespace nothing.
//
// # What runs
//
//	              options                  files, ports, credentials
//	rig.Start ---> complete ---> binaries ---> prepare ---> etcd + kube-apiserver ---> kube-controller-manager
//	                             (cache)                    until /readyz              kube-scheduler, kwok  (with Nodes)
//	                                                                                   until Nodes are ready
//
//	reap: a process of its own, which kills all these and removes the folder when our process ends in whatever way
//
// A cluster without Nodes has no scheduler and no kwok: Pods stay pending there. That's what a hub
// is. All servers listen on loopback, on ports below 32768. The API server speaks TLS with a
// certificate authority of the cluster's own; the kubeconfigs hold their credentials inline.
// Authorization is RBAC, ServiceAccounts and their tokens work, aggregated API servers and webhooks
// on loopback can be called.
//
// # What Pods do
//
// Pods start at once, run for a while and succeed, as Options.Pods says; labels in the Pod template
// choose otherwise (LabelRunFor, LabelExitCode, LabelFailFirst, …). A deleted Pod ends with exit
// code 143 before it goes away, as with a kubelet; Pods with restartPolicy Always run until they
// are deleted; with OnFailure, failing containers restart in place. Images are not pulled, probes
// and hooks not called, there are no logs and no IP addresses.
//
// # Vocabulary
//
//   - release: the Kubernetes minor version of the control plane.
//   - component: one process of a cluster.
//   - shape: what the nodes of one entry in Options.Nodes are like.
//   - fault: what is wrong with the network of a Proxy.
//
// # Trade-offs
//
// Data is not synced to disk, requests are not queued by priority and fairness, client-side limits
// are raised, and Nodes send no heartbeats: tests are fast, and a cluster at rest is silent. What
// depends on node lifecycle (a Node that stops reporting) is not simulated. A cluster takes 3 to 5
// seconds to start on two cores; a hub takes 400 MB of memory, a worker 510 MB. The proxy is our
// own, some hundred lines, as toxiproxy can neither break an idle connection nor hold data back
// without losing it.
package rig
