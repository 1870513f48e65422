// Package integration runs Kubernetes' integration suite for Jobs with pkg/worker as the Job
// controller.
//
//	test/integration/job of 1.37 ──three functions renamed──▶ scratch module + testdata/worker_test.go
//	    ──go test -c──▶ job.test ──several at once, each with a part of the tests──▶ result
//
// The suite starts real API servers and an etcd, and plays the kubelet. It creates the Job
// controller by one function; testdata/worker_test.go has another one of that name, which starts
// pkg/worker as jobferry-worker --drop-in does. The suite checks the built-in's counters; there the
// file compares those of pkg/worker, by the built-in's names and labels.
//
// It is the suite of 1.37, since pkg/worker is compiled with that release's types.
package integration
