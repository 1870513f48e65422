package groups_test

import (
	"context"
	"testing"

	"github.com/jobferry/jobferry/e2e/groups/trainertest"
)

// trainRuntime is Trainer's torch-distributed with a dataset to be fetched first.
const trainRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-with-dataset}
spec:
  mlPolicy:
    numNodes: 1
    torch: {numProcPerNode: auto}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers: [{name: dataset-initializer, image: registry.example/dataset:1}]
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: registry.example/torch:1}]
`

const trainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: mnist}
spec:
  runtimeRef: {name: torch-with-dataset}
  trainer: {numNodes: 2, numProcPerNode: 1}
`

// A TrainJob of Kubeflow is a JobSet: its Jobs run in one worker, where its nodes find each other.
func TestTrainJob(t *testing.T) {
	s := open(t)
	s.ok(trainertest.Start(context.WithoutCancel(t.Context()), s.Hub))
	s.RunManager()
	s.register()
	s.Kubectl(s.Hub, trainRuntime, "apply", "-f", "-")
	s.Kubectl(s.Hub, trainJob, "apply", "-n", s.NS, "-f", "-")
	s.Kubectl(s.Hub, "", "wait", "trainjob/mnist", "-n", s.NS, "--for=condition=Complete", "--timeout=2m")

	worker := s.together(s.completed("mnist", []string{"mnist-dataset-initializer-0", "mnist-node-0"}))
	nodes := 0
	for _, pod := range s.Pods(s.Cluster(worker)) {
		if pod.Labels["job-name"] != "mnist-node-0" {
			continue
		}
		nodes++
		env := map[string]string{}
		for _, variable := range pod.Spec.Containers[0].Env {
			env[variable.Name] = variable.Value
		}
		if env["PET_NNODES"] != "2" || env["PET_MASTER_ADDR"] != "mnist-node-0-0.mnist" || pod.Spec.Subdomain != "mnist" {
			t.Errorf("node %s.%s has the environment %v", pod.Spec.Hostname, pod.Spec.Subdomain, env)
		}
	}
	if nodes != 2 {
		t.Errorf("worker %s has %d nodes of the TrainJob", worker, nodes)
	}
	for _, name := range workers {
		s.lacksJobSet(name)
	}
}
