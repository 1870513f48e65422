package view

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// The states that the tests show, in the order of a run.

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

func entries() []scenario.Entry {
	return []scenario.Entry{
		{Name: "pi", Kind: "one Pod", Expect: scenario.Complete(1, 0)},
		{Name: "render", Kind: "20 Pods, 6 at a time", Expect: scenario.Complete(20, 0)},
		{Name: "doomed", Kind: "fails, backoffLimit 1", Expect: scenario.Failed(batchv1.JobReasonBackoffLimitExceeded, 2)},
	}
}

func empty() state.State { return state.New(began, entries()) }

func building() state.State {
	s := empty()
	s.StepBegan("Build jobferry-manager", "", at(0))
	s.StepEnded("Build jobferry-manager", "", false, at(12.5))
	s.StepBegan("Build Kubernetes 1.36", "4 of 6: building kube-apiserver; the first time this takes minutes", at(12.5))
	return s
}

func registering() state.State {
	s := building()
	s.StepEnded("Build Kubernetes 1.36", "6 programs, kept for the next time", false, at(160))
	s.StepBegan("Register the workers", "a Secret with a kubeconfig for each", at(165))
	s.Workers = []state.Worker{
		{Name: "east", Ready: true, Reason: "Connected", Version: "v1.36.3", Nodes: 3, FreeCPU: 12000, CPU: 12000},
		{Name: "west", Reason: "Unreachable", Message: "dial tcp 127.0.0.1:20001: connection refused"},
	}
	return s
}

func placed() state.State {
	s := registering()
	s.StepEnded("Register the workers", "", false, at(166))
	s.Workers[1] = state.Worker{Name: "west", Ready: true, Reason: "Connected", Version: "v1.36.3", Nodes: 2, FreeCPU: 16000, CPU: 16000}
	s.Jobs[0].Phase = state.Phase(jobview.Pending)
	s.Jobs[1].Phase, s.Jobs[1].Cluster, s.Jobs[1].Completions = state.Phase(jobview.Starting), "west", 20
	s.SawNews(state.News{At: at(167), Job: "render", Reason: "Placed", Note: "Placed on worker west"})
	s.SawNews(state.News{
		At: at(167.2), Job: "pi", Reason: "NotPlaced", Warning: true,
		Note: "0/2 clusters available: 2 Insufficient cpu.",
	})
	return s
}

func running() state.State {
	s := placed()
	s.Workers[0].Jobs, s.Workers[0].FreeCPU = 2, 11250
	s.Workers[1].Jobs, s.Workers[1].FreeCPU = 1, 10000
	s.Jobs[0] = job(s.Jobs[0], jobview.Running, "east", 1, 0, 0)
	s.Jobs[1] = job(s.Jobs[1], jobview.Running, "west", 6, 7, 0)
	s.Jobs[1].Indexes = "0-5,7"
	s.Jobs[2] = job(s.Jobs[2], jobview.BackingOff, "east", 0, 0, 1)
	return s
}

func job(j state.Job, phase jobview.State, worker string, active, succeeded, failed int32) state.Job {
	j.Phase, j.Cluster, j.Started = state.Phase(phase), worker, at(168)
	j.Active, j.Ready, j.Succeeded, j.Failed = active, active, succeeded, failed
	return j
}

func finishing() state.State {
	s := running()
	s.Jobs[0] = job(s.Jobs[0], jobview.Completing, "east", 0, 1, 0)
	s.Jobs[0].Conditions = "SuccessCriteriaMet"
	return s
}

func ended() state.State {
	s := running()
	for i, j := range s.Jobs {
		phase, conditions, succeeded, failed := jobview.Complete, "SuccessCriteriaMet, Complete", j.Completions, int32(0)
		if j.Name == "doomed" {
			phase, conditions, succeeded, failed = jobview.Failed, "FailureTarget, Failed", 0, 2
			j.Reason, j.Message = batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
		}
		s.Jobs[i] = job(j, phase, j.Cluster, 0, succeeded, failed)
		s.Jobs[i].Conditions, s.Jobs[i].Ended = conditions, at(172.4+float64(i)*7)
	}
	for i := range s.Workers {
		s.Workers[i].Jobs, s.Workers[i].FreeCPU = 0, s.Workers[i].CPU
	}
	return s
}

// wrong is a run that no Jobferry should show.
func wrong() state.State {
	s := ended()
	s.Jobs[0] = job(s.Jobs[0], jobview.Failed, "east", 0, 0, 7)
	s.Jobs[0].Reason, s.Jobs[0].Ended = "DeadlineExceeded", at(399)
	s.Jobs[1] = job(s.Jobs[1], jobview.Running, "west", 6, 7, 0)
	s.Jobs[1].Ended, s.Jobs[1].Conditions = time.Time{}, ""
	s.SawHubPod("uid")
	return s
}
