package subresources_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// The program as it's installed: it makes its certificate itself, has the hub trust it, and serves
// without being the leader.
func TestProgram(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))

	deleteLease(f)
	leases := f.Hub.Client().CoordinationV1().Leases(ferrytest.SystemNamespace)
	_, err := leases.Create(f.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "jobferry-manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another replica"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.StartManagerWithAPI("--leader-elect=true", "--subresources-service="+ferrytest.SubresourcesService)
	if log := reader(f, t).must(f.Context(), f.NS, "job", "log"); !strings.Contains(log, "started") {
		t.Errorf("log: %q", log)
	}
}

// deleteLease removes what an earlier test left.
func deleteLease(f *ferrytest.Ferry) {
	f.Kubectl(f.Hub, "", "-n", ferrytest.SystemNamespace, "delete", "lease", "jobferry-manager", "--ignore-not-found")
}

func TestProgramRefusesHalfACertificate(t *testing.T) {
	f := ferrytest.For(t)
	said, code := ferrytest.Exit(f.Context(), t, "--kubeconfig="+f.Hub.Kubeconfig(), "--subresources-bind-address=127.0.0.1:0", "--subresources-cert-file=/no/such/file")
	if code == 0 || !strings.Contains(said, "set both or neither") {
		t.Errorf("code %d: %s", code, said)
	}
}
