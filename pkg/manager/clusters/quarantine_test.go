package clusters

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/change"
)

// TestRenewedTokensEndNoQuarantine has a worker that is in quarantine get new credentials, as one
// does that has its token renewed all the time: nothing is sent to it.
func TestRenewedTokensEndNoQuarantine(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	options := w.registry.options
	options.ProbeInterval = time.Hour
	nothing := func() {}
	worker, err := newWorker("w1", options, callbacks{func(types.NamespacedName, bool) {}, func(change.Change) {}, func(types.NamespacedName) {}, nothing, nothing})
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{Worker: worker, identities: newIdentities()}
	t.Cleanup(s.close)
	lead := func(kubeconfig []byte) { worker.configure(Settings{}, targetOf(kubeconfig)) }

	lead(c.Kubeconfig("t"))
	s.replaceTarget()
	cause := &BoundError{Reason: v1alpha1.ReasonAnswerTooLarge}
	s.connection.broken.Store(cause)
	s.sync(t.Context())
	for _, token := range []string{"t1", "t2", "t"} {
		before := s.connection.transport.Load()
		lead(c.Kubeconfig(token))
		pause := s.sync(t.Context())
		if pause < maxQuarantine/2-time.Minute || c.Requests("get kube-system") > 0 || worker.View().Reason != cause.Reason {
			t.Errorf("%d probes are sent, the next after %s: %+v", c.Requests("get kube-system"), pause, worker.View())
		}
		if s.connection.transport.Load() == before {
			t.Error("the credentials aren't used")
		}
	}
	another := w.server.Add("d", "uid", "t")
	lead(another.Kubeconfig("t"))
	if s.sync(t.Context()); another.Requests("get kube-system") == 0 {
		t.Error("another server isn't tried")
	}
}

func TestSameServer(t *testing.T) {
	edit := func(change func(*clientcmdapi.Config)) *target { return targetOf(kubeconfig(t, change)) }
	first := targetOf(kubeconfig(t))
	for name, row := range map[string]struct {
		other *target
		same  bool
	}{
		"another token": {edit(func(c *clientcmdapi.Config) {
			for _, user := range c.AuthInfos {
				user.Token = "another"
			}
		}), true},
		"another server": {edit(func(c *clientcmdapi.Config) {
			for _, cluster := range c.Clusters {
				cluster.Server = "https://another"
			}
		}), false},
		"another CA": {edit(func(c *clientcmdapi.Config) {
			for _, cluster := range c.Clusters {
				cluster.CertificateAuthorityData = []byte("another")
			}
		}), false},
		"rubbish": {targetOf([]byte("rubbish")), false},
		"none":    {noTarget("", ""), false},
		"nil":     {nil, false},
	} {
		if got := first.sameServer(row.other); got != row.same {
			t.Errorf("%s: same server: %t", name, got)
		}
	}
}
