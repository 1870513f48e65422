package kueuetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// API is a client of Kueue's API group on the hub.
func (f *Fixture) API() rest.Interface {
	f.t.Helper()
	return f.Ferry.API(kueue.SchemeGroupVersion)
}

// WorkloadUntil waits until a condition holds for the Workload of a Job, and returns it as it was
// then.
func (f *Fixture) WorkloadUntil(job string, condition func(*kueue.Workload) bool) *kueue.Workload {
	f.t.Helper()
	return f.WorkloadOfUntil(f.UIDOf(job), condition)
}

// WorkloadOfUntil is WorkloadUntil for an object of any kind.
func (f *Fixture) WorkloadOfUntil(owner types.UID, condition func(*kueue.Workload) bool) *kueue.Workload {
	f.t.Helper()
	workloads := rig.Objects(f.API(), "workloads", f.NS)
	return f.Until(workloads, func(o runtime.Object) bool {
		w, ok := o.(*kueue.Workload)
		return ok && w.Labels["kueue.x-k8s.io/job-uid"] == string(owner) && condition(w)
	}).(*kueue.Workload)
}

// PatchWorkload merges JSON into the Workload of a Job.
func (f *Fixture) PatchWorkload(job string, patch map[string]any) {
	f.t.Helper()
	w := f.WorkloadUntil(job, func(*kueue.Workload) bool { return true })
	content, err := json.Marshal(patch)
	if err != nil {
		f.t.Fatal(err)
	}
	err = f.API().Patch(types.MergePatchType).Namespace(f.NS).Resource("workloads").Name(w.Name).Body(content).
		Do(f.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}

// SetActive plays the controller of an AdmissionCheck that isn't Jobferry's: it says that it's
// there.
func (f *Fixture) SetActive(check string) {
	f.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	err := f.API().Patch(types.MergePatchType).Resource("admissionchecks").Name(check).SubResource("status").Body(patch).
		Do(f.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}

// SetCheck plays the controller of an AdmissionCheck that isn't Jobferry's: it decides about a
// Workload.
func (f *Fixture) SetCheck(w *kueue.Workload, check string, state kueue.CheckState) {
	f.t.Helper()
	patch := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Workload","status":{"admissionChecks":[{"name":%q,"state":%q,"message":"","lastTransitionTime":%q}]}}`,
		kueue.SchemeGroupVersion, check, state, time.Now().UTC().Format(time.RFC3339))
	err := f.API().Patch(types.ApplyPatchType).Namespace(w.Namespace).Resource("workloads").Name(w.Name).SubResource("status").
		Param("fieldManager", check).Param("force", "true").Body(patch).Do(f.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}

// CheckUntil waits until an AdmissionCheck's condition Active has this status and reason.
func (f *Fixture) CheckUntil(name string, status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	f.Until(rig.Object(f.API(), "admissionchecks", "", name), func(o runtime.Object) bool {
		c, ok := o.(*kueue.AdmissionCheck)
		return ok && hasCondition(c.Status.Conditions, kueue.AdmissionCheckActive, status, reason)
	})
}

// RemoteUntil waits until a MultiKueueCluster's condition Active has this status and reason.
func (f *Fixture) RemoteUntil(name string, status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	f.Until(rig.Object(f.API(), "multikueueclusters", "", name), func(o runtime.Object) bool {
		c, ok := o.(*kueue.MultiKueueCluster)
		return ok && hasCondition(c.Status.Conditions, kueue.MultiKueueClusterActive, status, reason)
	})
}

func hasCondition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(conditions, kind)
	return c != nil && c.Status == status && c.Reason == reason
}

// Is says whether a condition of a Workload is True.
func Is(condition string) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool { return meta.IsStatusConditionTrue(w.Status.Conditions, condition) }
}

// Not turns a condition around.
func Not(condition func(*kueue.Workload) bool) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool { return !condition(w) }
}

// Admitted, PodsReady and Finished are what Kueue says of a Workload.
var (
	Admitted  = Is(kueue.WorkloadAdmitted)
	PodsReady = Is(kueue.WorkloadPodsReady)
	Finished  = Is(kueue.WorkloadFinished)
	HasQuota  = Is(kueue.WorkloadQuotaReserved)
)

// Evicted says whether Kueue has sent a Workload back.
var Evicted = Is(kueue.WorkloadEvicted)

// SentBack says whether a check of a Workload has sent it back.
func SentBack(w *kueue.Workload) bool {
	return len(w.Status.AdmissionChecks) > 0 && ptr.Deref(w.Status.AdmissionChecks[0].RetryCount, 0) > 0
}

// Retried says whether a Workload that a check has sent back has given its quota back.
func Retried(w *kueue.Workload) bool { return SentBack(w) && !HasQuota(w) }

// Check says whether a check of a Workload is in a state, with a text in its message.
func Check(name string, state kueue.CheckState, text string) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool {
		return slices.ContainsFunc(w.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool {
			return string(c.Name) == name && c.State == state && strings.Contains(c.Message, text)
		})
	}
}

// CheckIs says whether the Workload's only check is in a state, with a text in its message.
func CheckIs(state kueue.CheckState, text string) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool {
		return len(w.Status.AdmissionChecks) == 1 && w.Status.AdmissionChecks[0].State == state &&
			strings.Contains(w.Status.AdmissionChecks[0].Message, text)
	}
}

// Reclaimable says whether Kueue counts so many Pods as not needing quota any more.
func Reclaimable(pods int32) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool {
		return len(w.Status.ReclaimablePods) == 1 && w.Status.ReclaimablePods[0].Count == pods
	}
}

// AllEnd waits until all Jobs of the test's namespace have ended well, and so have their Workloads.
func (f *Fixture) AllEnd() {
	f.t.Helper()
	f.each(rig.Objects(f.Hub.Client().BatchV1().RESTClient(), "jobs", f.NS), f.jobNames(), func(o runtime.Object) (string, bool) {
		job := o.(*batchv1.Job)
		return job.Name, rigtest.Complete(job)
	})
	var all kueue.WorkloadList
	if err := f.API().Get().Namespace(f.NS).Resource("workloads").Do(f.Context()).Into(&all); err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	f.each(rig.Objects(f.API(), "workloads", f.NS), names, func(o runtime.Object) (string, bool) {
		w := o.(*kueue.Workload)
		return w.Name, Finished(w)
	})
}

func (f *Fixture) jobNames() []string {
	f.t.Helper()
	jobs, err := f.Hub.Client().BatchV1().Jobs(f.NS).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for i := range jobs.Items {
		names = append(names, jobs.Items[i].Name)
	}
	return names
}

// each waits until a condition has held for each of the objects of these names.
func (f *Fixture) each(watched rig.Watched, names []string, condition func(runtime.Object) (name string, holds bool)) {
	f.t.Helper()
	missing := sets.New(names...)
	f.Until(watched, func(o runtime.Object) bool {
		if o != nil {
			if name, holds := condition(o); holds {
				missing.Delete(name)
			}
		}
		return missing.Len() == 0
	})
}
