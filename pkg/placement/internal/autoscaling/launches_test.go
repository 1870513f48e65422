package autoscaling_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// What the object of a NodeClaim has beside its requirements.
const (
	pending  = `"status":{"conditions":[{"type":"Launched","status":"Unknown"}]}`
	launched = `"status":{"providerID":"x","conditions":[{"type":"Launched","status":"True"}]}`
)

// claim is a NodeClaim of the NodePool general as JSON; a requirement is "key=value,…".
func claim(uid, deleted, status string, requirements ...string) string {
	var all []string
	for _, r := range requirements {
		key, values, _ := strings.Cut(r, "=")
		all = append(all, fmt.Sprintf(`{"key":%q,"operator":"In","values":["%s"]}`, key, strings.ReplaceAll(values, ",", `","`)))
	}
	return fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{"karpenter.sh/nodepool":"general"}%s},"spec":{"requirements":[%s]},%s}`,
		uid, deleted, strings.Join(all, ","), status)
}

var deleted = deletedAt(time.Unix(0, 0))

func deletedAt(at time.Time) string {
	return fmt.Sprintf(`,"deletionTimestamp":%q`, at.UTC().Format(time.RFC3339))
}

func readClaim(t *testing.T, event watch.EventType, object string) *autoscaling.NodeClaim {
	t.Helper()
	c, is := autoscaling.ReadNodeClaim(event, []byte(object))
	if !is {
		t.Fatalf("no NodeClaim: %s", object)
	}
	return &c
}

func TestReadNodeClaim(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	for name, row := range map[string]struct {
		event   watch.EventType
		object  string
		outcome autoscaling.Outcome
		is      bool
	}{
		"new":                     {watch.Added, claim("1", "", pending), autoscaling.Pending, true},
		"deleted, and not yet":    {watch.Modified, claim("1", deleted, pending), autoscaling.Failed, true},
		"deleted":                 {watch.Deleted, claim("1", deleted, pending), autoscaling.Failed, true},
		"it got its instance":     {watch.Deleted, claim("1", "", pending), autoscaling.Made, true},
		"launched":                {watch.Modified, claim("1", "", launched), autoscaling.Made, true},
		"its node goes":           {watch.Deleted, claim("1", deleted, launched), autoscaling.Made, true},
		"without a UID":           {watch.Added, claim("", "", pending), 0, false},
		"of no NodePool":          {watch.Added, `{"metadata":{"uid":"1"}}`, 0, false},
		"of a NodePool like none": {watch.Added, `{"metadata":{"uid":"1","labels":{"karpenter.sh/nodepool":"No Name"}}}`, 0, false},
		"nonsense":                {watch.Added, `[7]`, 0, false},
		"requirements of others":  {watch.Added, claim("1", "", pending, "team=a", "team=b"), autoscaling.Pending, true},
		"not in a zone": {watch.Added, strings.Replace(claim("1", "", pending, zone+"=a"), `"In"`, `"NotIn"`, 1),
			autoscaling.Pending, false},
		"a zone twice":      {watch.Added, claim("1", "", pending, zone+"=a", zone+"=b"), autoscaling.Pending, false},
		"no zone":           {watch.Added, strings.Replace(claim("1", "", pending, zone+"=a"), `["a"]`, `[]`, 1), autoscaling.Pending, false},
		"too long a zone":   {watch.Added, claim("1", "", pending, zone+"="+strings.Repeat("a", 64)), autoscaling.Pending, false},
		"too many zones":    {watch.Added, claim("1", "", pending, zone+"=a"+strings.Repeat(",a", 1000)), autoscaling.Pending, false},
		"too many together": {watch.Added, claim("1", "", pending, zone+"=a"+strings.Repeat(",a", 500), "team=b"+strings.Repeat(",b", 500)), autoscaling.Pending, false},
		"too much required": {watch.Added, claim("1", "", pending, make([]string, 101)...), autoscaling.Pending, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, is := autoscaling.ReadNodeClaim(row.event, []byte(row.object))
			if is != row.is || is && c.Outcome != row.outcome {
				t.Errorf("%t, outcome %d; want %t, %d", is, c.Outcome, row.is, row.outcome)
			}
		})
	}
}

// From when on, and for how long, a machine counts as out that Karpenter couldn't get.
func TestFailedLaunches(t *testing.T) {
	var l autoscaling.Launches
	start := time.Unix(0, 0)
	fails := func(at time.Duration, requirements ...string) {
		for _, event := range []watch.EventType{watch.Modified, watch.Modified, watch.Deleted} {
			l.See(readClaim(t, event, claim("1", deletedAt(start.Add(at)), pending, requirements...)), start.Add(at))
		}
	}
	// out expects how many are out, and when that changes.
	out := func(at time.Duration, want int, next time.Duration) {
		t.Helper()
		if got := len(l.Out(start.Add(at))); got != want {
			t.Errorf("at %s, %d are out, want %d", at, got, want)
		}
		if got := l.Next(start.Add(at)); next == 0 && !got.IsZero() || next > 0 && !got.Equal(start.Add(next)) {
			t.Errorf("at %s, that changes at %s, want %s", at, got.Sub(start), next)
		}
	}
	out(0, 0, 0)
	fails(0)
	out(0, 0, 30*time.Second)
	fails(10 * time.Second) // again, which isn't another failure
	out(29*time.Second, 0, 30*time.Second)
	out(30*time.Second, 1, 190*time.Second)
	out(190*time.Second, 0, 0)

	fails(200 * time.Second) // nobody has got one meanwhile: there's nothing to wait for
	out(200*time.Second, 1, 560*time.Second)
	for at, pause := 560*time.Second, 12*time.Minute; pause < 3*time.Hour; pause *= 2 {
		fails(at)
		end := at + min(pause, 30*time.Minute)
		out(end-1, 1, end)
		out(end, 0, 0)
		at = end
	}
	l.See(readClaim(t, watch.Deleted, claim("made", "", pending)), start)
	fails(24 * time.Hour)
	out(24*time.Hour, 0, 24*time.Hour+30*time.Second)
	fails(26*time.Hour, "node.kubernetes.io/instance-type=x") // a new day: the other one is forgotten
	out(26*time.Hour+time.Minute, 1, 26*time.Hour+3*time.Minute)
}

// However often NodeClaims that are being deleted are seen, by turns and in each new watch, they
// have failed once.
func TestFailedLaunchesThatStay(t *testing.T) {
	var l autoscaling.Launches
	start := time.Unix(0, 0)
	for at := time.Duration(0); at < 2*time.Hour; at += time.Minute {
		for i := range 20 {
			l.See(readClaim(t, watch.Modified, claim(fmt.Sprint(i), deletedAt(start.Add(time.Duration(i%2)*10*time.Second)), pending)), start.Add(at))
		}
		if got := l.Out(start.Add(at)); len(got) > 0 && at > 4*time.Minute {
			t.Fatalf("after %s, %v is out", at, got)
		}
	}
}

// A worker whose clock is ahead, or that makes up times, has its next failures counted all the
// same.
func TestFailedLaunchesOfAClockThatIsAhead(t *testing.T) {
	var l autoscaling.Launches
	start := time.Unix(0, 0)
	for _, at := range []time.Duration{0, 5 * time.Minute} {
		l.See(readClaim(t, watch.Deleted, claim("1", deletedAt(start.Add(24*time.Hour)), pending)), start.Add(at))
	}
	if got := l.Next(start.Add(5 * time.Minute)); !got.Equal(start.Add(11 * time.Minute)) {
		t.Errorf("it's out until %s after the second failure, want 6 minutes", got.Sub(start.Add(5*time.Minute)))
	}
}

// A NodeClaim says something about the machines that it may have become, and about no others of its
// NodePool.
func TestFailedLaunchesConcernTheirOffers(t *testing.T) {
	const kind, zone, capacityType = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
	nodes := []*capacity.Node{ofPool("general", "small", "0"), ofPool("general", "large", "0"), ofPool("other", "small", "0")}
	on := func(selector map[string]string) *JobBuilder {
		j := NewJob("one").Requests("cpu", "3")
		j.Obj().Spec.Template.Spec.NodeSelector = selector
		return j
	}
	one := on(map[string]string{autoscaling.LabelNodePool: "general"})
	smallOnes := on(map[string]string{autoscaling.LabelNodePool: "general", kind: "small"})
	inB := on(map[string]string{autoscaling.LabelNodePool: "general", zone: "b"})
	said := &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{template("general", "8", 4, "")}}
	for name, row := range map[string]struct {
		failed, made []string
		spec         *v1alpha1.Autoscaling
		job          *JobBuilder
		out          bool
	}{
		"all of it":                      {nil, nil, nil, one, true},
		"another type":                   {[]string{kind + "=large"}, nil, nil, smallOnes, false},
		"its type":                       {[]string{kind + "=tiny,small"}, nil, nil, smallOnes, true},
		"one of two":                     {[]string{kind + "=tiny,small"}, nil, nil, one, false},
		"another zone":                   {[]string{zone + "=a"}, nil, nil, inB, false},
		"its zone":                       {[]string{zone + "=b"}, nil, nil, inB, true},
		"in its zone, but not all types": {[]string{zone + "=b", kind + "=small"}, nil, nil, inB, false},
		"only spot":                      {[]string{capacityType + "=spot"}, nil, nil, inB, false},
		"another NodePool":               {nil, nil, nil, on(map[string]string{autoscaling.LabelNodePool: "other"}), false},
		"a label that no cloud sells":    {[]string{"team=a"}, nil, nil, one, true},
		"a template that says nothing":   {[]string{kind + "=large", zone + "=a"}, nil, said, one, true},
		"one was made since":             {[]string{kind + "=tiny,small"}, []string{kind + "=small"}, nil, smallOnes, false},
		"one of another type was made":   {[]string{kind + "=small"}, []string{kind + "=large"}, nil, smallOnes, true},
		"it or another one was made":     {[]string{kind + "=small"}, []string{kind + "=large,small"}, nil, smallOnes, true},
		"one of any type was made in b":  {[]string{kind + "=small"}, []string{zone + "=b"}, nil, smallOnes, true},
		"its type was made in b":         {[]string{kind + "=small"}, []string{zone + "=b", kind + "=small"}, nil, smallOnes, false},
		"one in another zone was made":   {[]string{zone + "=b"}, []string{zone + "=a"}, nil, inB, true},
	} {
		t.Run(name, func(t *testing.T) {
			var l autoscaling.Launches
			now := time.Unix(0, 0)
			l.See(readClaim(t, watch.Deleted, claim("1", deleted, pending, row.failed...)), now)
			if row.made != nil {
				l.See(readClaim(t, watch.Deleted, claim("2", "", pending, row.made...)), now)
			}
			before := observe(t, nil, nodes, pool("general", "", ""), pool("other", "", ""))
			observed := before.With(l.Out(now.Add(time.Minute)))
			if is := len(observed.Out) > 0; observed.LacksMore(before) != is || before.LacksMore(observed) || !observed.SaysTheSame(before) {
				t.Errorf("%d are out, and the worker lacks more: %t", len(observed.Out), observed.LacksMore(before))
			}
			room := autoscaling.NewRoom(autoscaling.GrowthOf(row.spec, observed), nil, nil)
			if added := room.Nodes(shape(row.job), math.MaxInt64); (len(added) == 0) != row.out || room.IsPaused(shape(row.job)) != row.out {
				t.Errorf("%d nodes may be added, paused %t, want %t", len(added), room.IsPaused(shape(row.job)), row.out)
			}
		})
	}
}

// However many fail, and in whatever ways, the last ones are remembered, and few of them.
func TestFailedLaunchesAreBounded(t *testing.T) {
	var l autoscaling.Launches
	now := time.Unix(0, 0)
	for i := range 1000 {
		l.See(readClaim(t, watch.Deleted, claim(fmt.Sprint(i), deleted, pending, corev1.LabelInstanceTypeStable+fmt.Sprintf("=t%d", i))), now.Add(time.Duration(i)))
	}
	out := l.Out(now.Add(time.Minute))
	if len(out) != 50 || out[len(out)-1].Values[corev1.LabelInstanceTypeStable][0] != "t999" {
		t.Errorf("%d are out, the last %v", len(out), out[len(out)-1])
	}
}
