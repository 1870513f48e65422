package pods

import (
	"testing"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/manager/pods/report"
)

var testNow = time.Unix(1_790_000_000, 0)

// usual is a Pod that runs, and is shown as it is.
func usual() *snapshot {
	return &snapshot{
		now: testNow, shown: true, worker: "w1", known: true, usable: true,
		pod:    &report.Pod{UID: "pod", Job: "job", Mirror: "mirror", Digest: "1", Phase: corev1.PodRunning, Ready: true},
		job:    &hubJob{uid: "job", placed: true, proven: true},
		shadow: &shadow{uid: "shadow", worker: unique.Make("w1"), pod: "pod", job: "job", jobName: "job", digest: "1", phase: unique.Make("Running"), ready: true},
	}
}

type edit func(*snapshot)

func noShadow(s *snapshot)   { s.shadow = nil }
func noPod(s *snapshot)      { s.pod = nil }
func noJob(s *snapshot)      { s.job = nil }
func unknown(s *snapshot)    { s.pod, s.known = nil, false }
func jobDeleted(s *snapshot) { s.job.deleting = true }
func podDeleted(s *snapshot) { s.pod.Deleting, s.pod.Grace = true, 30 }
func podEnded(s *snapshot) {
	s.pod.Phase, s.pod.Ready, s.pod.Digest = corev1.PodSucceeded, false, "2"
}
func shownEnded(s *snapshot) {
	podEnded(s)
	s.shadow.phase, s.shadow.ready, s.shadow.digest = unique.Make("Succeeded"), false, "2"
}
func deleted(s *snapshot)   { s.shadow.deleting, s.shadow.grace = true, 30 }
func atOnce(s *snapshot)    { s.shadow.deleting, s.shadow.grace = true, 0 }
func kept(s *snapshot)      { s.shadow.kept = true }
func leaving(s *snapshot)   { s.leaving = true }
func disrupted(s *snapshot) { s.shadow.disrupted = true }
func lost(s *snapshot)      { s.usable = false }
func moved(s *snapshot)     { s.job.placed = false }
func stranger(s *snapshot)  { s.shadow.pod = "" }
func changed(s *snapshot)   { s.pod.Digest, s.pod.Since = "2", testNow }

// decision is what is to be decided of the usual Pod, edited.
type decision struct {
	edits []edit
	want  Action
}

func (d decision) check(t *testing.T) {
	s := usual()
	for _, edit := range d.edits {
		edit(s)
	}
	got, after := decide(s)
	if got != d.want || (got == Wait) != (after > 0) {
		t.Errorf("decided %q, after %s; want %q", got, after, d.want)
	}
}

func TestDecide(t *testing.T) {
	for name, row := range map[string]decision{
		"as it should be":                     {nil, Nothing},
		"not shown yet":                       {[]edit{noShadow}, Create},
		"not shown yet, has ended":            {[]edit{noShadow, podEnded}, Create},
		"removed after its end":               {[]edit{noShadow, podEnded, func(s *snapshot) { s.pod.Past = true }}, Nothing},
		"not shown yet, being deleted":        {[]edit{noShadow, podDeleted}, Nothing},
		"not of a mirror":                     {[]edit{noShadow, func(s *snapshot) { s.job.proven = false }}, Nothing},
		"not of a Job of the hub":             {[]edit{noShadow, noJob}, Nothing},
		"of a Job that is being deleted":      {[]edit{noShadow, jobDeleted}, Nothing},
		"in a namespace without the label":    {[]edit{noShadow, func(s *snapshot) { s.shown = false }}, Nothing},
		"without a report":                    {[]edit{noShadow, func(s *snapshot) { s.pod.Digest = "" }}, Nothing},
		"the label is gone":                   {[]edit{func(s *snapshot) { s.shown = false }}, Remove},
		"the worker isn't registered":         {[]edit{noPod, func(s *snapshot) { s.worker = "" }}, Remove},
		"of an earlier Job of the name":       {[]edit{func(s *snapshot) { s.job.uid = "another" }}, Remove},
		"of an earlier Pod of the name":       {[]edit{func(s *snapshot) { s.pod.UID = "another" }}, Remove},
		"the Pod is gone":                     {[]edit{noPod}, Remove},
		"the Pod is gone, with its Job":       {[]edit{noPod, noJob}, Remove},
		"nothing is known of the Pod":         {[]edit{unknown}, Nothing},
		"nothing is known, Job gone":          {[]edit{unknown, noJob, deleted}, Remove},
		"the worker is lost":                  {[]edit{lost}, Nothing},
		"the worker is lost, Job has moved":   {[]edit{lost, moved}, Remove},
		"the worker is lost, Job is gone":     {[]edit{lost, noJob}, Remove},
		"the Job has moved, Pod is there":     {[]edit{moved}, Nothing},
		"the Job has moved, Pod is deleted":   {[]edit{moved, podDeleted}, Terminate},
		"the Pod is deleted":                  {[]edit{podDeleted}, Terminate},
		"both are deleted":                    {[]edit{podDeleted, deleted}, Nothing},
		"the Pod has ended":                   {[]edit{podEnded}, WriteStatus},
		"it has ended, and is shown":          {[]edit{shownEnded}, Nothing},
		"it has ended, and its shadow hadn't": {[]edit{shownEnded, func(s *snapshot) { s.pod.Phase = corev1.PodRunning }}, Remove},
		"the hub wrote Failed":                {[]edit{func(s *snapshot) { s.shadow.phase = unique.Make("Failed") }}, Remove},
		"the hub wrote that it isn't ready":   {[]edit{func(s *snapshot) { s.shadow.ready = false }}, WriteStatus},
		"a change":                            {[]edit{changed}, Wait},
		"a change, a moment ago":              {[]edit{changed, func(s *snapshot) { s.now = testNow.Add(settleMore) }}, WriteStatus},
		"its end":                             {[]edit{changed, podEnded}, WriteStatus},
		"a change of readiness":               {[]edit{changed, func(s *snapshot) { s.pod.Ready, s.now = false, testNow.Add(settle) }}, WriteStatus},
		"just created, nothing to tell": {[]edit{func(s *snapshot) {
			s.shadow.digest, s.shadow.phase, s.shadow.ready = "", unique.Make("Pending"), false
			s.pod.Phase, s.pod.Ready, s.pod.Quiet = corev1.PodPending, false, true
		}}, Nothing},
		"a stranger":                           {[]edit{stranger, noPod}, Nothing},
		"a stranger is deleted":                {[]edit{stranger, noPod, deleted}, Remove},
		"a stranger has a Pod's name":          {[]edit{stranger}, Refuse},
		"a stranger has a Pod's name, deleted": {[]edit{stranger, deleted}, Remove},
		"an orphan of a Job that is there":     {[]edit{func(s *snapshot) { s.shadow.job = "" }}, Remove},
		"an orphan, its Job is gone":           {[]edit{noJob, func(s *snapshot) { s.shadow.job = "" }}, Nothing},
		"an orphan, its Job and Pod are gone":  {[]edit{noJob, noPod, func(s *snapshot) { s.shadow.job = "" }}, Remove},
	} {
		t.Run(name, row.check)
	}
}

// The shadow is being deleted, and by whom.
func TestDecideOfADeletion(t *testing.T) {
	for name, row := range map[string]decision{
		"a person":                              {[]edit{deleted}, PassOn},
		"a person, by force":                    {[]edit{atOnce}, Nothing},
		"deleted in part, its Pod is gone":      {[]edit{atOnce, noPod}, Remove},
		"kept by a finalizer, its Pod is gone":  {[]edit{atOnce, kept, noPod}, Nothing},
		"kept so, in a namespace without label": {[]edit{atOnce, kept, func(s *snapshot) { s.shown = false }}, Nothing},
		"a stranger kept so":                    {[]edit{atOnce, kept, stranger}, Nothing},
		"a namespace that is being deleted":     {[]edit{deleted, leaving}, Remove},
		"such a namespace, the worker is lost":  {[]edit{deleted, leaving, lost}, Remove},
		"such a namespace, nobody":              {[]edit{leaving}, Nothing},
		"such a namespace, not shown yet":       {[]edit{leaving, noShadow}, Nothing},
		"a person, the status differs":          {[]edit{deleted, changed}, PassOn},
		"a person, the worker is lost":          {[]edit{deleted, lost}, Nothing},
		"a person, after its end":               {[]edit{deleted, shownEnded}, Remove},
		"a person, it has ended in the worker":  {[]edit{deleted, podEnded}, Remove},
		"taint eviction, preemption, the API":   {[]edit{deleted, disrupted}, Remove},
		"taint eviction, after a real one":      {[]edit{deleted, disrupted, podDeleted}, Nothing},
		"podgc, of a Node that is gone":         {[]edit{deleted, disrupted, func(s *snapshot) { s.shadow.phase = unique.Make("Failed") }}, Remove},
		"podgc, that left no trace":             {[]edit{noShadow}, Create},
		"podgc, of many that have ended":        {[]edit{noShadow, podEnded, func(s *snapshot) { s.pod.Past = true }}, Nothing},
		"garbage collection, with its Job":      {[]edit{deleted, jobDeleted}, Nothing},
		"garbage collection, Job is gone":       {[]edit{deleted, noJob}, Remove},
		"garbage collection, of an earlier Job": {[]edit{deleted, func(s *snapshot) { s.job.uid = "another" }}, Remove},
		"nobody, in a namespace without label":  {[]edit{deleted, func(s *snapshot) { s.shown = false }}, Remove},
	} {
		t.Run(name, row.check)
	}
}

// However a deletion looks, it's passed on only in one situation.
func TestOnlyAPersonsDeletionIsPassedOn(t *testing.T) {
	bits := []edit{deleted, disrupted, podDeleted, jobDeleted, lost, moved, podEnded, stranger, leaving, atOnce,
		func(s *snapshot) { s.shadow.phase = unique.Make("Failed") },
		func(s *snapshot) { s.job.uid = "another" },
		func(s *snapshot) { s.pod.UID = "another" },
		func(s *snapshot) { s.shown = false },
		func(s *snapshot) { s.worker = "" },
	}
	const mayDiffer = 1<<0 | 1<<5 // deleted; moved, but still there
	for set := range 1 << len(bits) {
		s := usual()
		for i, edit := range bits {
			if set&(1<<i) != 0 {
				edit(s)
			}
		}
		action, _ := decide(s)
		if want := set&1 != 0 && set&^mayDiffer == 0; (action == PassOn) != want {
			t.Fatalf("%b: decided %q", set, action)
		}
	}
}
