package dashboard

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// largest the plugin's memory may become.
const largest = 150 << 20

// Thousands of Jobs, one of them with as many indexes as a Job may have: no page stalls, and the
// plugin stays small. The Jobs are only on the hub, with the statuses that a manager would write.
func TestManyJobs(t *testing.T) {
	s := open(t)
	s.createMany()
	d := s.serve("-n", s.NS)
	s.Visit(d.URL)
	s.Visit(d.base + "/jobs")
	s.Until("#page", "of "+thousands(*jobs))
	for _, page := range []struct{ name, path, shown string }{
		{"Jobs", "/jobs", "document.querySelectorAll('tbody tr').length == 100"},
		{"Jobs, filtered", "/jobs?state=Failed&q=job-0", "document.querySelectorAll('tbody tr').length > 5"},
		{"Jobs, the last page", fmt.Sprintf("/jobs?page=%d", (*jobs+99)/100), "document.querySelector('[rel=prev]')"},
		{"Usage", "/usage", "document.querySelectorAll('#usage-jobs tbody tr').length == 20"},
		{"a Job with many indexes", "/jobs/" + s.NS + "/largest", "document.querySelector('.map').dataset.drawn"},
	} {
		took := s.load(d.base+page.path, page.shown)
		t.Logf("%-26s %v", page.name, took.Round(time.Millisecond))
		if took > *slowest {
			t.Errorf("%s: shown after %v", page.name, took)
		}
	}
	s.sorts(d)
	s.fitsPhone(d)
	s.Visit(d.base + "/jobs")
	took := s.typing("job-02")
	t.Logf("%-26s %v", "what a search finds", took.Round(time.Millisecond))
	if took > *slowest {
		t.Errorf("a search takes %v", took)
	}
	peak := d.memory(t)
	t.Logf("%-26s %d MB at most", "the plugin's memory", peak>>20)
	if peak > largest {
		t.Errorf("the plugin has taken %d MB", peak>>20)
	}
}

// sorts clicks on each column's header. The address keeps the order, and a search keeps it, too.
func (s *scene) sorts(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs")
	for _, key := range []string{"name", "state", "worker", "succeeded", "active", "failed", "duration", "age", "why"} {
		took := s.click("#sort-"+key, fmt.Sprintf(`document.querySelector("#sort-%s").parentElement.ariaSort == "ascending"`, key))
		s.t.Logf("%-26s %v", "Jobs, sorted by "+key, took.Round(time.Millisecond))
		if took > *slowestSort {
			s.t.Errorf("sorted by %s after %v", key, took)
		}
	}
	last := fmt.Sprintf("job-%04d", min(*jobs-1, 999))
	s.sortBy("name", "job-0001")
	s.sortBy("name", "largest")
	s.Is(`location.search == "?sort=-name" && document.querySelector("#sort-name").parentElement.ariaSort == "descending"`)
	s.Accessible()
	s.Reload()
	s.Until("tbody th", "largest")
	s.typing("job-0")
	s.Until("tbody th", last)
	s.Is(`location.search.includes("sort=-name")`)
	s.Script(`document.getElementById("sort-name").click()`, nil)
	s.Is(`location.search == "?q=job-0" && !document.querySelector("[aria-sort]")`)
}

// sortBy clicks on a column's header, and waits for the Job that is to be the first one.
func (s *scene) sortBy(key, first string) {
	s.t.Helper()
	s.Script(fmt.Sprintf(`document.getElementById("sort-%s").click()`, key), nil)
	s.Until("tbody th", first)
}

// fitsPhone measures 22 Jobs on a phone, some of which have much to say.
func (s *scene) fitsPhone(d *served) {
	s.t.Helper()
	s.Window(360, 740)
	defer s.Window(1280, 800)
	s.Visit(d.base + "/jobs?q=phone=yes&sort=-failed")
	s.Is(`document.querySelectorAll("tbody tr").length == 22 && document.getElementById("sort").value == "-failed"`)
	var height int
	s.Script(`document.documentElement.scrollHeight`, &height)
	s.t.Logf("%-26s %d px", "22 Jobs on a phone", height)
	if height > 3500 {
		s.t.Errorf("22 Jobs are %d px high on a phone", height)
	}
	s.Accessible()
	s.Is("document.documentElement.scrollWidth <= innerWidth")
	s.Script(`{ const select = document.getElementById("sort"); select.value = "name"; select.dispatchEvent(new Event("input", {bubbles: true})) }`, nil)
	s.Is(`location.search.includes("sort=name") && document.querySelector("tbody th").innerText == "job-0001"`)
}

// click clicks on an element, and returns how long it took until an expression is true and painted.
func (s *scene) click(selector, shown string) time.Duration {
	s.t.Helper()
	return s.measure(fmt.Sprintf("(document.querySelector(%q).click(), performance.now())", selector), shown)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// createMany creates the Jobs.
func (s *scene) createMany() {
	s.t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same Jobs each time
	list := make([]*batchv1.Job, *jobs)
	for i := range list {
		list[i] = s.Job(fmt.Sprintf("job-%04d", i), rigtest.Indexed(10), inState(random.IntN(4)))
		if i > 0 && i <= 22 {
			list[i].Labels = map[string]string{"phone": "yes"}
		}
	}
	list[0] = s.Job("largest", rigtest.Indexed(int32(*indexes)), inState(1), manyRuns) //nolint:gosec // a flag
	errs := make([]error, len(list))
	workqueue.ParallelizeUntil(s.Context(), 16, len(list), func(i int) {
		status := list[i].Status
		made, err := s.Hub.Client().BatchV1().Jobs(s.NS).Create(s.Context(), list[i], metav1.CreateOptions{})
		if err == nil && status.StartTime != nil {
			made.Status = status
			_, err = s.Hub.Client().BatchV1().Jobs(s.NS).UpdateStatus(s.Context(), made, metav1.UpdateOptions{})
		}
		errs[i] = err
	})
	for _, err := range errs {
		s.check(err)
	}
}

// account is what each Job has used that isn't waiting: of a mirror that it has left, and of
// another one.
var account = usage.Account{
	{Worker: "north", UID: "1", Seconds: 900, Left: true, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	{Worker: "west", UID: "2", Seconds: 3600, Succeeded: 1800, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
}

// inState gives a Job one of four states: it waits, runs, failed or is complete.
func inState(state int) rigtest.Option {
	return func(j *batchv1.Job) {
		if state == 0 {
			return
		}
		now := metav1.Now()
		j.Status = batchv1.JobStatus{StartTime: &now, Active: 2, Ready: ptr.To[int32](2)}
		condition := func(kind batchv1.JobConditionType, reason string) batchv1.JobCondition {
			return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now}
		}
		switch state {
		case 2:
			j.Status = batchv1.JobStatus{StartTime: &now, Failed: 1, Conditions: []batchv1.JobCondition{
				condition(batchv1.JobFailureTarget, "BackoffLimitExceeded"), condition(batchv1.JobFailed, "BackoffLimitExceeded")}}
			j.Status.Conditions[1].Message = "Job has reached the specified backoff limit, which is a text that is longer than a line, and longer than two on a phone"
		case 3:
			j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 10, CompletedIndexes: "0-9", Conditions: []batchv1.JobCondition{
				condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached"), condition(batchv1.JobComplete, "CompletionsReached")}}
		}
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: []string{"west", "east"}[state%2], hubstate.Usage: account.String()})
	}
}

// manyRuns completes two of three indexes, which is as hard to draw as it gets.
func manyRuns(j *batchv1.Job) {
	var completed []string
	for i := 0; i+1 < *indexes; i += 3 {
		completed = append(completed, fmt.Sprintf("%d,%d", i, i+1))
	}
	j.Status.CompletedIndexes = strings.Join(completed, ",")
	j.Status.Succeeded = int32(2 * len(completed)) //nolint:gosec // a flag
}

// load opens an address, and returns how long it took until an expression is true, by the browser's
// clock.
func (s *scene) load(address, shown string) time.Duration {
	s.t.Helper()
	s.Visit(address)
	return s.measure("0", shown)
}

// typing types into the search, and returns how long it took until the list has only what matches.
func (s *scene) typing(text string) time.Duration {
	s.t.Helper()
	s.Script(`document.getElementById("q").focus()`, nil)
	for _, key := range strings.Split(text, "") {
		s.Press(key)
	}
	return s.measure("performance.now()", fmt.Sprintf(`[...document.querySelectorAll("tbody th")].every((name) => name.innerText.startsWith(%q))`, text))
}

// measure returns the milliseconds from a time of the page's own clock until an expression is true
// and painted.
func (s *scene) measure(from, expression string) time.Duration {
	s.t.Helper()
	var milliseconds float64
	s.Script(fmt.Sprintf(`new Promise((done) => {
		const from = %s;
		const look = () => (%s) ? requestAnimationFrame(() => done(performance.now() - from)) : requestAnimationFrame(look);
		look();
	})`, from, expression), &milliseconds)
	return time.Duration(milliseconds * float64(time.Millisecond))
}

// memory is the most that the process has taken, in bytes.
func (d *served) memory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscanf(after, "%d kB", &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
