package rig

import (
	"bytes"
	_ "embed"
	"text/template"
	"time"
)

// kwokTemplate is kwok's configuration: parallelism, and the stages that Nodes and Pods go through.
// Its own placeholders are in [[ ]], as the stages themselves are templates in {{ }}.
//
//go:embed kwok.yaml
var kwokTemplate string

// Labels of a Pod (or of a Job's Pod template) that say what the simulated Pod does. They are
// labels, and not annotations, so that what must be watched can be selected.
const (
	// LabelStartAfter is the time from binding to running, such as "500ms". Default:
	// PodDefaults.StartAfter.
	LabelStartAfter = "rig.jobferry.dev/start-after"
	// LabelRunFor is the time from running to the end, such as "2s", or "forever". Default:
	// PodDefaults.RunFor.
	LabelRunFor = "rig.jobferry.dev/run-for"
	// LabelStopAfter is the time from deletion to the end of the containers. Default:
	// PodDefaults.StopAfter.
	LabelStopAfter = "rig.jobferry.dev/stop-after"
	// LabelExitCode is the containers' exit code, 0 to 255; other than 0 fails the Pod (or restarts
	// its containers, if its restartPolicy is OnFailure). Default "0", or "1" if one of the next
	// two labels makes the Pod fail.
	LabelExitCode = "rig.jobferry.dev/exit-code"
	// LabelFailFirst is a number: that many first Pods of a Job fail, later ones succeed.
	LabelFailFirst = "rig.jobferry.dev/fail-first"
	// LabelFailIndexes fails the Pods of these completion indexes of an Indexed Job, such as "1_4".
	LabelFailIndexes = "rig.jobferry.dev/fail-indexes"
	// LabelReason is the reason of the containers' end, such as "OOMKilled". Default "Completed" or
	// "Error".
	LabelReason = "rig.jobferry.dev/reason"
	// LabelDisrupted set to "true" ends the Pod as an eviction would: with the condition
	// DisruptionTarget.
	LabelDisrupted = "rig.jobferry.dev/disrupted"
	// LabelNeverReady set to "true" keeps a running Pod from becoming ready.
	LabelNeverReady = "rig.jobferry.dev/never-ready"

	// labelAttempt is written by the rig on Pods with LabelFailFirst: the how-manieth Pod of its
	// Job it is.
	labelAttempt = "rig.jobferry.dev/attempt"
)

// RunForever is the value of LabelRunFor for Pods that end only when they are deleted.
const RunForever = "forever"

func kwokConfiguration(pods PodDefaults) ([]byte, error) {
	t, err := template.New("kwok.yaml").Delims("[[", "]]").Parse(kwokTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]time.Duration{
		"StartAfter": pods.StartAfter, "RunFor": pods.RunFor, "StopAfter": pods.StopAfter,
	})
	return out.Bytes(), err
}
