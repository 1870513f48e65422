package job

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/usage"
)

// maxAccounts bounds the namespaces that the metrics of usage tell apart in one worker. What else is
// used counts for the namespace "".
const maxAccounts = 500

// accountant counts by how much the accounts of Jobs have grown: when the hub has answered the write, so
// that what a manager counts isn't counted by the next one.
type accountant struct {
	cost func(worker string) v1alpha1.Cost

	mu         sync.Mutex
	namespaces map[string]map[string]bool // by worker
}

func newAccountant(cost func(worker string) v1alpha1.Cost) *accountant {
	return &accountant{cost: cost, namespaces: map[string]map[string]bool{}}
}

// count counts what an account has more than that of the hub Job before the write.
func (a *accountant) count(job *batchv1.Job, written usage.Account) {
	if len(written) == 0 {
		return
	}
	for _, u := range usage.Growth(usage.Read(job), written) {
		namespace := a.namespace(u.Worker, job.Namespace)
		usageTotal.WithLabelValues(namespace, u.Worker, string(u.Resource)).Add(u.Total)
		repeatedTotal.WithLabelValues(namespace, u.Worker, string(u.Resource)).Add(u.Repeated)
		unknownTotal.WithLabelValues(namespace, u.Worker, string(u.Resource)).Add(u.Unknown)
		if cost := u.Cost(a.cost(u.Worker)); cost > 0 {
			costTotal.WithLabelValues(namespace, u.Worker).Add(cost)
		}
	}
}

// namespace is how the metrics name a namespace.
func (a *accountant) namespace(worker, name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.namespaces[worker]
	switch {
	case known[name]:
	case len(known) >= maxAccounts:
		return ""
	case known == nil:
		a.namespaces[worker] = map[string]bool{name: true}
	default:
		known[name] = true
	}
	return name
}

func (a *accountant) forget(worker string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.namespaces, worker)
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

// addAccount adds the Job's account to the annotations of a placement that is about to be written.
func (t *turn) addAccount(annotations map[string]any) usage.Account {
	account := t.Account()
	if len(account) > 0 {
		annotations[v1alpha1.AnnotationUsage] = account.String()
	}
	return account
}
