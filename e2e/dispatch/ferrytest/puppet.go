package ferrytest

import (
	"encoding/json"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// PuppetName is the name of the worker without a Job controller: the test plays it.
const PuppetName = "puppet"

// OnPuppet sends a Job to the puppet.
var OnPuppet = OnWorker(PuppetName)

// RegisterPuppet registers the puppet through its liar, in a pool of its own.
func (f *Ferry) RegisterPuppet() *Liar {
	f.t.Helper()
	liar := f.Liar(PuppetName)
	kubeconfig, err := liar.Kubeconfig()
	if err != nil {
		f.t.Fatal(err)
	}
	f.RegisterSecret(PuppetName, map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig}, map[string]string{"pool": PuppetName})
	f.WorkerUntil(PuppetName, func(*v1alpha1.WorkerCluster) bool { return true })
	f.SetWorker(PuppetName, `{"capacity":"Unlimited"}`) // it has no nodes
	f.WorkerUntil(PuppetName, Ready)
	return liar
}

// Play writes a mirror's status in the puppet, as its Job controller would.
func (f *Ferry) Play(name string, status batchv1.JobStatus) {
	f.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		f.t.Fatal(err)
	}
	f.PatchIn(f.Cluster(PuppetName), types.MergePatchType, name, string(patch), "status")
}

// SubmitToPuppet creates a Job on the hub and waits for its mirror in the puppet.
func (f *Ferry) SubmitToPuppet(name string, options ...rigtest.Option) {
	f.t.Helper()
	f.Submit(name, append(options, OnPuppet)...)
	f.MirrorUntil(PuppetName, name, Exists)
}

// Started is a status with a startTime, and Pods that run and are ready.
func Started(pods int32) batchv1.JobStatus {
	return batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(time.Now().Truncate(time.Second))), Active: pods, Ready: &pods}
}
