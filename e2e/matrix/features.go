package matrix

import (
	"slices"

	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// scope is what the result of a feature depends on.
type scope string

const (
	ofPair   scope = "pair"
	ofHub    scope = "hub"
	ofWorker scope = "worker"
)

// feature is a row of the table.
type feature struct {
	name string
	// folder of e2e has the stories: names of tests and their subtests.
	folder  string
	stories []string
	scope   scope
	// lacks are releases of hubs that can't have the feature, and why.
	lacks []binaries.Release
	why   string
}

const (
	edits    = "TestEditsOnTheHub/"
	skeleton = "TestWalkingSkeleton/"
	policies = "TestHubAndWorkerOfDifferentReleases/asked for/"
	divided  = "TestBuiltIn/stories/"
)

// before136 are the releases that lack what 1.36 turned on.
var before136 = []binaries.Release{"1.33", "1.34", "1.35"}

// before137 are the releases whose Jobs have no spec.scheduling.
var before137 = append([]binaries.Release{"1.36"}, before136...)

// features are the rows. A story costs its time for each pair: a few of them tell the most.
var features = []feature{
	{name: "dispatch: Jobs of each kind end as in the worker", folder: "dispatch", scope: ofPair,
		stories: []string{skeleton + "kinds of Jobs end on the hub as in the worker", skeleton + "the hub has no Pods and the mirror no marks of the hub"}},
	{name: "live status", folder: "dispatch", scope: ofPair, stories: []string{skeleton + "status shows on the hub at once"}},
	{name: "deletion", folder: "dispatch", scope: ofPair, stories: []string{skeleton + "delete removes the mirror, its Pods, then the hub Job"}},
	{name: "suspend and resume", folder: "dispatch", scope: ofPair, stories: []string{
		edits + "suspend and resume while running", edits + "created suspended: waits on the hub"}},
	{name: "`parallelism`, elastic Indexed Jobs", folder: "dispatch", scope: ofPair, stories: []string{
		edits + "parallelism", edits + "elastic Indexed Job"}},
	{name: "edits of labels, `backoffLimit`, `activeDeadlineSeconds`", folder: "dispatch", scope: ofPair, stories: []string{
		edits + "labels and annotations", edits + "backoffLimit", edits + "activeDeadlineSeconds"}},
	{name: "scheduling directives while suspended", folder: "dispatch", scope: ofPair, stories: []string{
		edits + "edited before it is placed", edits + "scheduling directives while suspended"}},
	{name: "Pod resources while suspended", folder: "dispatch", scope: ofPair, stories: []string{edits + "Pod resources while suspended"},
		lacks: before136, why: "The hub's API server refuses such an edit before 1.36, where MutablePodResourcesForSuspendedJobs is on."},
	{name: "`podFailurePolicy`", folder: "dispatch/skew", scope: ofPair, stories: []string{policies + "podFailurePolicy"}},
	{name: "`successPolicy`", folder: "dispatch/skew", scope: ofPair, stories: []string{policies + "successPolicy"}},
	{name: "`backoffLimitPerIndex`", folder: "dispatch/skew", scope: ofPair, stories: []string{policies + "backoffLimitPerIndex"}},
	{name: "no field of a Job is lost; workers that drop one are passed over", folder: "dispatch/fields", scope: ofPair, stories: []string{
		"TestNoFieldIsLost", "TestWorkersThatDropAField"}},
	{name: "gang scheduling: a worker that has it off is passed over", folder: "dispatch/fields", scope: ofPair, stories: []string{"TestFieldOfANewerRelease"},
		lacks: before137, why: "Jobs have `spec.scheduling` since 1.37."},
	{name: "a lost worker's Jobs continue elsewhere, with their progress", folder: "loss", scope: ofPair, stories: []string{
		"TestJobsOfALostWorkerGoOn/w2 to w1"}},
	{name: "the same, with the embedded Job controller", folder: "loss", scope: ofPair, stories: []string{
		"TestJobsOfALostWorkerGoOn/w2 to embedded"}},
	{name: "drain, built-in and embedded Job controller", folder: "loss", scope: ofPair, stories: []string{"TestDrain/w2", "TestDrain/embedded"}},
	{name: "fence", folder: "fence", scope: ofPair, stories: []string{"TestStoppedInTimeAndConfirmed", "TestMovedJobRunsInOnePlace"}},
	{name: "one Job in several workers, built-in Job controller", folder: "spanning", scope: ofPair, stories: []string{
		divided + "indexed", divided + "non-indexed", divided + "suspend", divided + "success-policy", divided + "elastic"}},
	{name: "one Job in several workers, one of them with the embedded Job controller", folder: "spanning", scope: ofPair, stories: []string{
		"TestMixed/stories/completes", "TestMixed/stories/rebalances"}},
	{name: "admission by policy", folder: "admission", scope: ofHub, stories: []string{"TestClaimedByPolicy", "TestRefusedNewHub"},
		lacks: before136, why: "MutatingAdmissionPolicy is on since 1.36. Before, the webhook takes its place."},
	{name: "admission by webhook", folder: "admission", scope: ofHub, stories: []string{"TestClaimedByWebhook", "TestRefusedOldHub"}},
	{name: "embedded Job controller: retries and policies", folder: "worker", scope: ofWorker, stories: []string{
		"TestBackoffLimitPerIndex", "TestPodFailurePolicyFailJob", "TestPodFailurePolicyFailIndex", "TestSuccessPolicy"}},
	{name: "embedded Job controller: suspend, scale, deadline", folder: "worker", scope: ofWorker, stories: []string{
		"TestSuspendAndResume", "TestElasticIndexedJob", "TestActiveDeadlineAcrossSuspension"}},
	{name: "embedded Job controller: its permissions, instead of the built-in", folder: "worker", scope: ofWorker, stories: []string{
		"TestProcessWithItsPermissionsOnly", "TestDropInMode"}},
}

// has says whether a hub of this release can have the feature.
func (f feature) has(hub string) bool { return !slices.Contains(f.lacks, binaries.Release(hub)) }

// run is what is run at once: the stories of one package, with these releases. One of them is empty
// if it doesn't matter.
type run struct {
	folder      string
	hub, worker string
}

// runOf is the run that tells a feature's stories for a pair.
func (f feature) runOf(p table.Pair) run {
	r := run{folder: f.folder}
	if f.scope != ofWorker {
		r.hub = p.Hub
	}
	if f.scope != ofHub {
		r.worker = p.Worker
	}
	return r
}

// runsOf lists the runs of a pair, in the order of the table.
func runsOf(p table.Pair) []run {
	var runs []run
	for _, f := range features {
		if r := f.runOf(p); f.has(p.Hub) && !slices.Contains(runs, r) {
			runs = append(runs, r)
		}
	}
	return runs
}

// stories are those of all features that the run tells.
func (r run) stories() []string {
	var stories []string
	for _, f := range features {
		if f.folder == r.folder && f.has(r.hub) {
			stories = append(stories, f.stories...)
		}
	}
	return stories
}
