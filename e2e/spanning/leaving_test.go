package spanning_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Workers with the built-in Job controller that a Job has to leave while it runs. These stories
// have the workers to themselves.
func TestLeaving(t *testing.T) {
	open(t, "w1", "w2")
	t.Run("drained", drained)
	t.Run("lost", lost)
}

// A drained worker's mirror is stopped, and what it had left goes to the other worker when that has
// room, with the progress that it had.
func drained(t *testing.T) {
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(16), atOnce(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, s.ofWorker("w2")[:2]...)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	s.SetWorker("w2", `{"drain":true}`)
	defer s.SetWorker("w2", `{"drain":false}`)
	s.HubJobUntil("job", ferrytest.IsAt("w1"))
	s.MirrorGone("w2", "job")
	s.finishAll()
	s.completes(16)
	s.pods.expectCompleted(t, 16, 1)
}

// A lost worker's shard continues in the other worker. The lost one comes back, and its mirror is
// removed.
func lost(t *testing.T) {
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(16), atOnce(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, s.ofWorker("w1")[:2]...)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	defer s.Cluster("w1").Proxy().Heal()
	s.Cluster("w1").Proxy().BlackHole()
	s.HubJobUntil("job", ferrytest.IsAt("w2"))
	s.finishAll("w2")
	s.completes(16)
	s.Cluster("w1").Proxy().Heal()
	s.MirrorGone("w1", "job")
	s.pods.expectCompleted(t, 16, 1)
}
