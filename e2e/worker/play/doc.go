// Package play drives a Job controller by hand, in a cluster without nodes: the test is the
// kubelet, and says what happens to each Pod and when. It also runs jobferry-worker as a process.
//
//	program, err := product.Build(ctx, dir, "jobferry-worker")
//	controller, err := play.Start(program, cluster.Kubeconfig(), "--sync-batch-period=200ms")
//	hand := play.Hand{Client: cluster.Client(), Namespace: ns}
//	pods, err := hand.Pods(ctx, "job")
//	err = hand.Exit(ctx, pods[0], 1)
//
// # Vocabulary
//
//   - bound: the Pod's template names a node, so a deleted Pod stays until its kubelet, which is the test, lets it go.
//   - exit: a Pod's containers end, and with them the Pod.
//   - let go: a deleted Pod's containers end with code 143, and the Pod goes away.
//
// # Trade-offs
//
// Nothing is simulated by timers, so a test never races with a simulated kubelet; it has to do all
// of it instead. Where Pods just have to run, use the rig's nodes.
package play
