package job

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// These bound what the metrics of usage tell apart in one worker. What other namespaces use counts
// for the namespace "". Other resources don't count: a sum of several says nothing. CPU, memory and
// ephemeral storage are always among them.
const (
	maxAccounts         = 500
	maxAccountResources = 32
)

// accountant counts by how much the accounts of Jobs have grown: when the hub has answered the
// write, so that what a manager counts isn't counted by the next one.
type accountant struct {
	cost func(worker string) v1alpha1.Cost

	mu     sync.Mutex
	labels map[string]*accountLabels // by worker
}

// accountLabels are the namespaces and resources that the metrics of a worker name.
type accountLabels struct{ namespaces, resources map[string]bool }

func newAccountant(cost func(worker string) v1alpha1.Cost) *accountant {
	return &accountant{cost: cost, labels: map[string]*accountLabels{}}
}

// count counts what an account has more than that of the hub Job before the write.
func (a *accountant) count(job *batchv1.Job, written usage.Account) {
	if len(written) == 0 {
		return
	}
	for _, u := range usage.Growth(usage.Read(job), written) {
		namespace, resource := a.labelsOf(u.Worker, job.Namespace, string(u.Resource))
		if cost := u.Cost(a.cost(u.Worker)); cost > 0 {
			costTotal.WithLabelValues(namespace, u.Worker).Add(cost)
		}
		if resource == "" {
			continue
		}
		usageTotal.WithLabelValues(namespace, u.Worker, resource).Add(u.Total)
		repeatedTotal.WithLabelValues(namespace, u.Worker, resource).Add(u.Repeated)
		unknownTotal.WithLabelValues(namespace, u.Worker, resource).Add(u.Unknown)
	}
}

// labelsOf is how the metrics of a worker name a namespace and a resource; empty: they don't.
func (a *accountant) labelsOf(worker, namespace, resource string) (ofNamespace, ofResource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.labels[worker]
	if known == nil {
		known = &accountLabels{namespaces: map[string]bool{}, resources: map[string]bool{
			string(corev1.ResourceCPU): true, string(corev1.ResourceMemory): true, string(corev1.ResourceEphemeralStorage): true,
		}}
		a.labels[worker] = known
	}
	return label(known.namespaces, namespace, maxAccounts), label(known.resources, resource, maxAccountResources)
}

// label is a name, if it's among the first so many; otherwise it's empty.
func label(known map[string]bool, name string, most int) string {
	if !known[name] && len(known) >= most {
		return ""
	}
	known[name] = true
	return name
}

func (a *accountant) forget(worker string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.labels, worker)
}

// costOf are the prices of a worker; none: it has none, or isn't known.
func costOf(workers workers) func(string) v1alpha1.Cost {
	return func(name string) v1alpha1.Cost {
		w, ok := workers.get(name)
		if !ok {
			return nil
		}
		return w.View().Spec.Cost
	}
}

// addAccount adds the Job's account to a placement that is about to be written.
func (t *turn) addAccount(changes hubstate.Changes) usage.Account {
	account := t.Account()
	if len(account) > 0 {
		changes[hubstate.Usage] = account.String()
	}
	return account
}
