package upgrade_test

import (
	"testing"
)

// Jobs of all kinds run from the previous release through an upgrade to this one, back to the
// previous one, and the next upgrade. It's the hub first each time, so that each version of the
// manager meets each of jobferry-worker. No Pod is stopped, or runs twice; a WorkerCluster keeps
// all settings.
func TestProductIsUpgraded(t *testing.T) {
	before, after := previous(t), present(t)
	s := newStage(t)
	s.installHub(before, "--set", values)
	s.installWorker(before, "--set", "config.podFailureBackoff=1s,config.logFormat=text")
	s.register()
	kept := s.createFull()
	s.submit()
	s.each(done, func(j *job) { s.exit(j, 0, anyPod) })
	kept.expectKept()
	copied, mirrors := s.copiesOf(settings), s.mirrors()

	s.installHub(after)
	s.progress()
	s.scale(4)
	s.failIndex(1)
	s.suspend(halted)
	kept.set("preemption", "LowerPriority") // the previous release has no such settings
	kept.set("cost", map[string]any{"cpu": "30m"})
	kept.set("podStartTimeout", "10m0s")
	kept.set("autoscaling", map[string]any{
		"limits":        map[string]any{"cpu": "400"},
		"nodeTemplates": []any{map[string]any{"name": "general", "maxNodes": 20.0, "allocatable": map[string]any{"cpu": "15"}}},
	})
	kept.set(laterField, "kept")
	kept.expectAll()
	kept.expectKept()
	s.pluginsWork(before, after)
	s.expectVersion(after)

	s.installWorker(after)
	s.progress()
	s.resume(waiting)

	s.stop(manager)
	s.deleteJobs(deleted)
	s.installHub(before, "--set", "crds.enabled=false")
	s.progress()
	s.resume(halted)
	kept.expectKept()
	s.pluginsWork(before, after)

	s.installWorker(before)
	s.progress()
	s.scale(5)
	s.failIndex(2)

	for range *rounds - 1 {
		s.installHub(after, "--set", "crds.enabled=true")
		s.installWorker(after)
		kept.expectKept()
		s.installWorker(before)
		s.installHub(before, "--set", "crds.enabled=false")
		kept.expectKept()
	}

	s.installHub(after, "--set", "crds.enabled=true")
	s.installWorker(after)
	kept.expectKept()
	if now := s.copiesOf(settings); now != copied {
		t.Errorf("the copies of the ConfigMap were %s, and are %s", copied, now)
	}
	s.expectMirrors(mirrors)
	s.finish()
	s.leaveNothing()
}
