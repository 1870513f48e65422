package job

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/kueue"
)

// dispatcher is what the integration with Kueue sees of this package.
type dispatcher struct {
	*wakeups
	reconciler *Reconciler
}

// Outlook implements kueue.Dispatcher.
func (d dispatcher) Outlook(uid types.UID) (kueue.Outlook, bool) {
	return d.reconciler.outlooks.Of(uid)
}

// WakeWaiting implements kueue.Dispatcher.
func (d dispatcher) WakeWaiting() { d.Wake(d.reconciler.waiters.All()...) }
