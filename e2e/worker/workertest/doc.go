// Package workertest drives a Job controller in a cluster without nodes: the test is the kubelet,
// and decides what happens to each Pod and when. It also runs jobferry-worker as a process.
//
//	program, err := product.Build(ctx, dir, "jobferry-worker")
//	controller, err := workertest.Start(program, cluster.Kubeconfig(), "--sync-batch-period=200ms")
//	kubelet := workertest.Kubelet{Client: cluster.Client(), Namespace: ns}
//	pods, err := kubelet.Pods(ctx, "job")
//	err = kubelet.Exit(ctx, pods[0], 1)
//
// # Vocabulary
//
//   - bound: the Pod's template names a node, so a deleted Pod stays until the test terminates it.
//   - exit: a Pod's containers end, and with them the Pod.
//   - terminate: a deleted Pod's containers end with code 143, and the Pod goes away.
//
// # Trade-offs
//
// Nothing is simulated by timers, so a test never races with a simulated kubelet, but has to report
// everything itself. Where Pods just have to run, use the rig's nodes.
package workertest
