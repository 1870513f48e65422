package kueuetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/manager"
)

func mustParse(quantity string) resource.Quantity { return resource.MustParse(quantity) }

// apis are clients of Kueue's API group, by hub.
var apis sync.Map

// API is a client of Kueue's API group on the hub.
func (f *Fixture) API() rest.Interface {
	f.t.Helper()
	if api, ok := apis.Load(f.Hub); ok {
		return api.(rest.Interface)
	}
	config := rest.CopyConfig(f.Hub.RESTConfig())
	config.APIPath = "/apis"
	config.GroupVersion = &kueue.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(manager.NewScheme()).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	api, err := rest.RESTClientFor(config)
	if err != nil {
		f.t.Fatal(err)
	}
	apis.Store(f.Hub, api)
	return api
}

// WorkloadUntil waits until a condition holds for the Workload of a Job, and returns it as it was then.
func (f *Fixture) WorkloadUntil(job string, condition func(*kueue.Workload) bool) *kueue.Workload {
	f.t.Helper()
	uid := string(f.UIDOf(job))
	workloads := rig.Objects(f.API(), "workloads", f.NS)
	return f.Until(workloads, func(o runtime.Object) bool {
		w, ok := o.(*kueue.Workload)
		return ok && w.Labels["kueue.x-k8s.io/job-uid"] == uid && condition(w)
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

// SetActive plays the controller of an AdmissionCheck that isn't Jobferry's: it says that it's there.
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

// Retried says whether a check of a Workload has sent it back, with its quota given back and a turn for it later.
func Retried(w *kueue.Workload) bool {
	return !HasQuota(w) && len(w.Status.AdmissionChecks) > 0 && ptr.Deref(w.Status.AdmissionChecks[0].RetryCount, 0) > 0
}

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
