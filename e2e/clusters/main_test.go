package clusters

import (
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	rigtest.Main(m,
		rig.Options{Name: "hub", Audit: true},
		rig.Options{Name: "w1", FaultProxy: true, Nodes: []rig.Nodes{{Count: 2, CPU: "8", Memory: "32Gi"}}},
		rig.Options{Name: "w2"},
	)
}
