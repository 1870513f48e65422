package upgrade_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// kubernetesBefore and kubernetesAfter are two minor releases in a row.
const (
	kubernetesBefore = binaries.Oldest
	kubernetesAfter  = binaries.Current
)

// Jobs of all kinds run through an upgrade of Kubernetes: the hub's, then each worker's. It's the
// last test, as nothing takes that back.
func TestKubernetesIsUpgraded(t *testing.T) {
	v := present(t)
	s := newStage(t)
	s.installHub(v, "--set", values)
	s.installWorker(v, "--set", "config.podFailureBackoff=1s,config.logFormat=text")
	s.register()
	s.submit()
	s.each(done, func(j *job) { s.exit(j, 0, anyPod) })
	s.progress()

	s.upgradeKubernetes(hubName)
	s.installHub(v) // by now, the hub may have what the chart prefers
	s.progress()
	s.scale(4)
	s.failIndex(1)
	s.suspend(halted)
	s.deleteJobs(deleted)

	s.upgradeKubernetes(builtIn)
	s.progress()
	s.resume(waiting)

	s.upgradeKubernetes(embedded)
	s.progress()
	s.resume(halted)
	s.scale(5)
	s.failIndex(2)
	s.finish()
	s.leaveNothing()
}

// upgradeKubernetes upgrades a cluster. Programs that ended because its API server was away are
// started again, as a kubelet does.
func (s *stage) upgradeKubernetes(name string) {
	s.t.Helper()
	s.log("Kubernetes %s in %s", kubernetesAfter, name)
	if err := s.Cluster(name).Upgrade(s.Context(), kubernetesAfter); err != nil {
		s.t.Fatal(err)
	}
	for program, process := range s.running {
		if !process.Runs() {
			s.log("%s has ended meanwhile, and is started again", program)
			s.running[program] = process.Again(s.t)
		}
	}
}
