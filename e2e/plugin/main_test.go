package plugin

import (
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	nodes := []rig.Nodes{{Count: 2, CPU: "8", Memory: "32Gi"}}
	rigtest.Main(m,
		rig.Options{Name: "hub"},
		rig.Options{Name: "w1", Nodes: nodes, Audit: true},
		rig.Options{Name: "w2", Nodes: nodes},
	)
}
