package conformance

import (
	"regexp"
	"slices"
	"strings"
)

// Part is one of the ways in which Kubernetes' tests, or JobSet's, run.
type Part string

const (
	// Integration is Kubernetes' integration suite for Jobs, with pkg/worker as the Job controller.
	Integration Part = "integration"
	// DropIn are the e2e cases on a real node, with jobferry-worker --drop-in in the built-in's place.
	DropIn Part = "drop-in"
	// Dispatcher are the e2e cases through a hub, with a worker that has a real node.
	Dispatcher Part = "dispatcher"
	// Hub are the e2e cases on the hub's own API server, which shows the Pods of such a worker.
	Hub Part = "hub"
	// JobSet are JobSet's e2e cases on such an API server, with JobSet's manager beside it.
	JobSet Part = "jobset"
)

// Parts are all of them, in the order in which they run.
var Parts = []Part{Integration, DropIn, Dispatcher, Hub, JobSet}

// Case is a test that is left out.
type Case struct {
	// Name is the test's: of the integration suite TestX or TestX/subtest, of the e2e cases the text.
	Name string
	// Reason says why it can't hold.
	Reason string
}

const (
	gateOff  = "It switches off JobManagedBy, which can't be switched off since 1.35, in the built-in's own process."
	allJobs  = "With WorkloadWithJob on, the built-in makes a Workload and a PodGroup for each Job. pkg/worker can't see the gate, and makes them for Jobs with `spec.scheduling`."
	delegate = "The PodGroup is one that another controller delegates by annotation. pkg/worker doesn't make those; it says so in an event."
	owner    = "It wants an owner reference with the UID that the Job has on the hub. The Pod's owner is the mirror in the worker, which has a UID of its own."
	shows    = "It changes owner references and labels of a Pod. The hub shows the worker's Pod, and nothing of that reaches the worker."
	vanishes = "It deletes a Job that has no Pods yet, and looks for it at once. On the hub, a deleted Job is there for some milliseconds, until its mirror is gone."
	claims   = "JobSet makes PersistentVolumeClaims on the hub. They aren't carried along: their volumes are the hub's."
	gates    = "It removes scheduling gates of Pods. The hub shows the worker's Pods, without their gates, and nothing that is changed there reaches the worker."
	evicts   = "It evicts Pods. An eviction on the hub is for a Node there that is to be empty, as by `kubectl drain`. So it ends no Pod in a worker."
)

const adopt = "should adopt matching orphans and release non-matching pods"

// LeftOut are the tests that don't run, by part. docs/reference/conformance.md shows them.
var LeftOut = map[Part][]Case{
	Integration: {
		{"TestManagedBy_Reenabling", gateOff},
		{"TestManagedBy/the Job controller reconciles an unsuspended with the custom value of managedBy; feature disabled", gateOff},
		{"TestDelayTerminalPhaseCondition/job backoff limit exceeded; JobManagedBy disabled", gateOff},
		{"TestDelayTerminalPhaseCondition/job scale down to meet completions; JobManagedBy disabled", gateOff},
		{"TestJobGangScheduling/eligible job creates workload and podgroup", allJobs},
		{"TestJobGangScheduling/non-indexed basic job still materializes objects (Universal Representation)", allJobs},
		{"TestJobGangScheduling/single-pod basic job materializes objects", allJobs},
		{"TestJobGangScheduling/completions != parallelism basic job materializes objects", allJobs},
		{"TestJobGangScheduling/suspended job creates workload before pods", allJobs},
		{"TestJobGangScheduling/controller restart preserves workload", allJobs},
		{"TestJobDelegatedPodGroup", delegate},
	},
	Dispatcher: {
		{adopt, owner},
	},
	Hub: {
		{adopt, shows},
		{"should allow to use a pod failure policy to ignore failure matching on DisruptionTarget condition", evicts},
		{"should remove from active list jobs that have been deleted", vanishes},
	},
	JobSet: {
		{"should create PVCs with multiple retention policies", claims},
		{"should allow to add schedulingGates to PodTemplate while resuming", gates},
	},
}

// SkipPattern is what go test -skip takes to leave out tests.
func SkipPattern(cases []Case) string {
	var patterns []string
	for _, c := range cases {
		var levels []string
		for level := range strings.SplitSeq(c.Name, "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(strings.ReplaceAll(level, " ", "_"))+"$")
		}
		patterns = append(patterns, strings.Join(levels, "/"))
	}
	return strings.Join(patterns, "|")
}

// Stale are the cases that tests don't have any more, by the names of the tests and the source that
// has the names of their subtests.
func Stale(cases []Case, tests []string, source string) []string {
	var stale []string
	for _, c := range cases {
		test, subtest, has := strings.Cut(c.Name, "/")
		if !slices.Contains(tests, test) || (has && !strings.Contains(source, `"`+subtest+`"`)) {
			stale = append(stale, c.Name)
		}
	}
	return stale
}
