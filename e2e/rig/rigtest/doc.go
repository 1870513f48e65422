// Package rigtest is the test language on top of package rig: one test package shares its clusters
// over all of its tests, and each test has namespaces of its own.
//
//	func TestMain(m *testing.M) {
//		rigtest.Main(m, rig.Options{Name: "hub"}, rig.Options{Name: "worker", Nodes: []rig.Nodes{{Count: 3}}})
//	}
//
//	func TestPi(t *testing.T) {
//		f := rigtest.For(t)
//		worker := f.Cluster("worker")
//		ns := f.Namespace(worker)
//		f.Create(worker, rigtest.Job(ns, "pi", rigtest.RunFor(time.Second)))
//		f.JobUntil(worker, ns, "pi", rigtest.Complete)
//	}
//
// The clusters start when the first test asks for one, so tests that need none don't pay. Every
// wait is a watch, with a time limit for the whole test. When a test fails, its namespaces are
// written to the test's log. Verbs (Create, JobUntil, …) end the test on an error; conditions
// (Complete, Failed, …) are plain functions.
package rigtest
