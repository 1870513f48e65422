package usage

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// Bounds of an account.
const (
	// MaxMirrors is how many mirrors it has that the Job has left. The time of the oldest is added to
	// that of another one in the same worker.
	MaxMirrors = 16
	// most is how many it has in all.
	most = 256
	// maxObjects of JSON is more than so many mirrors have, with their requests.
	maxObjects = 2 * most
	// MaxResources is how many resources of a Pod count: those that Kubernetes knows, then the others
	// by name.
	MaxResources = 8
	// sane is more than any number in an account is.
	sane = 1e15
)

// Account is what a hub Job used, by mirror.
type Account []Mirror

// Mirror is the account of one mirror.
type Mirror struct {
	// Worker is where it is or was.
	Worker string `json:"worker"`
	// UID of the mirror.
	UID types.UID `json:"uid"`
	// Requests of one Pod.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Seconds for which Pods ran that have ended.
	Seconds Seconds `json:"seconds"`
	// Succeeded is the part of Seconds of Pods that succeeded while the Job had a use for that.
	Succeeded Seconds `json:"succeeded,omitempty"`
	// Unknown are seconds for which Pods may have run besides: nobody knows when they ended.
	Unknown Seconds `json:"unknown,omitempty"`
	// Count is how many Pods have ended.
	Count int64 `json:"count,omitempty"`
	// Seeded is how many Pods that ended before it was made the mirror counts.
	Seeded int64 `json:"seeded,omitempty"`
	// Pods that run, and the mean of when they got their nodes.
	Pods  int64  `json:"pods,omitempty"`
	Since Moment `json:"since,omitempty"`
	// At is when the hub last knew the mirror's Pods.
	At Moment `json:"at"`
	// Ahead is how far the hub's clock was ahead of the worker's then.
	Ahead Seconds `json:"ahead,omitempty"`
	// Newest is when the last of the Pods got its node, by the worker's clock.
	Newest Moment `json:"newest,omitempty"`
	// Left: the Job has left the mirror before its end.
	Left bool `json:"left,omitempty"`
	// Ended is when the hub wrote that the Job has ended.
	Ended Moment `json:"ended,omitempty"`
}

// Seconds for which a Pod ran, or several together.
type Seconds float64

// Moment is a time by the hub's clock, in seconds since 1970.
type Moment float64

func momentOf(t time.Time) Moment { return Moment(t.Unix()) + Moment(t.Nanosecond()/1e6)/1e3 }

func (m Moment) time() time.Time { return time.UnixMilli(int64(math.Round(float64(m) * 1e3))) }

// Read returns the account on a hub Job. One that can't be read is empty: somebody edited it.
func Read(job *batchv1.Job) Account {
	var a Account
	text := hubstate.Get(job, hubstate.Usage)
	if text == "" || strings.Count(text, "{") > maxObjects || quantities.HasCostlyJSON([]byte(text), reflect.TypeFor[Account]()) || json.Unmarshal([]byte(text), &a) != nil {
		return nil
	}
	return slices.DeleteFunc(a[:min(len(a), most)], func(m Mirror) bool { return !m.makesSense() })
}

// makesSense reports whether the hub may have written the account of a mirror.
func (m *Mirror) makesSense() bool {
	if len(m.Requests) > MaxResources {
		return false
	}
	for _, number := range []float64{
		float64(m.Seconds), float64(m.Succeeded), float64(m.Count), float64(m.Seeded), float64(m.Pods), float64(m.Since), float64(m.At), float64(m.Ended),
		float64(m.Newest), float64(m.Unknown), math.Abs(float64(m.Ahead)),
	} {
		if number < 0 || number > sane {
			return false
		}
	}
	for _, quantity := range m.Requests {
		if quantity.Sign() < 0 {
			return false
		}
	}
	return true
}

// ID tells mirrors apart. A worker writes the UIDs of its own, which may be those of another
// worker's.
type ID struct {
	Worker string
	UID    types.UID
}

// IDs are those of all mirrors. One that the Job has left may still be there: without its marks,
// nobody has seen it since its worker is back.
func (a Account) IDs() []ID {
	ids := make([]ID, 0, len(a))
	for i := range a {
		ids = append(ids, a[i].ID())
	}
	return ids
}

// ID of the mirror.
func (m *Mirror) ID() ID { return ID{m.Worker, m.UID} }

// Of is the account of one mirror; empty: it has none.
func (a Account) Of(id ID) Mirror {
	for i := range a {
		if a[i].ID() == id {
			return a[i]
		}
	}
	return Mirror{}
}

// places are where the mirrors of each worker are in the account: a worker has few, and there may
// be very many workers.
type places map[string][]int

func (a Account) places() places {
	in := make(places, len(a))
	for i := range a {
		in[a[i].Worker] = append(in[a[i].Worker], i)
	}
	return in
}

// at is where a mirror is; -1: the account doesn't have it.
func (a Account) at(in places, id ID) int {
	for _, i := range in[id.Worker] {
		if a[i].UID == id.UID {
			return i
		}
	}
	return -1
}

func (a Account) of(in places, id ID) Mirror {
	if i := a.at(in, id); i >= 0 {
		return a[i]
	}
	return Mirror{}
}

// String is the account as hubstate.Usage; empty: it isn't one that Read and Next make.
func (a Account) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	return string(text)
}

// Closed is the account when nothing more will be learnt: Pods that run count for as long as the
// hub knew them to.
func (a Account) Closed() Account {
	closed := slices.Clone(a)
	for i := range closed {
		m := &closed[i]
		m.Seconds, m.Count, m.Pods, m.Since = m.known(), m.Count+m.Pods, 0, 0
	}
	return closed
}

// Settled are the seconds that don't change any more if nothing else is learnt of the mirror: those
// of Pods that run count when the Job has left them, for as long as the hub knew them to run.
func (m *Mirror) Settled() Seconds {
	if !m.Left {
		return m.Seconds
	}
	return m.known()
}

// Until are the seconds at some time, with those of Pods that run until then.
func (m *Mirror) Until(now time.Time) Seconds {
	if m.Left {
		return m.known()
	}
	return m.until(momentOf(now))
}

// known are the seconds when the hub last knew the mirror's Pods.
func (m *Mirror) known() Seconds { return m.until(m.At) }

func (m *Mirror) until(at Moment) Seconds {
	return m.Seconds + Seconds(m.Pods)*Seconds(max(at-m.Since, 0))
}

// Repeated is the part of some of the mirror's seconds that was done again elsewhere.
func (m *Mirror) Repeated(of Seconds) Seconds {
	if !m.Left {
		return 0
	}
	return max(of-m.Succeeded, 0)
}

// fold adds the oldest mirrors that the Job has left to the next ones while there are too many. If
// that isn't enough, the oldest of all go.
func (a Account) fold() Account {
	over := max(a.left()-MaxMirrors, len(a)-most, 0)
	in, kept := a.places(), make(Account, 0, len(a))
	for i := range a {
		old := &a[i]
		if over == 0 || !old.Left {
			kept = append(kept, *old)
			continue
		}
		over--
		for _, k := range in[old.Worker] {
			if m := &a[k]; k > i && m.Left && m.requests(old.Requests) {
				m.add(old)
				break
			}
		}
	}
	return kept[over:]
}

// add adds the time of another mirror.
func (m *Mirror) add(old *Mirror) {
	settled := old.Settled()
	m.Seconds, m.Succeeded, m.Count = m.Seconds+settled, m.Succeeded+old.Succeeded, m.Count+old.Count+old.Pods
	m.Unknown += old.Unknown
}

func (a Account) left() (count int) {
	for i := range a {
		if a[i].Left {
			count++
		}
	}
	return count
}

// requests reports whether these are the mirror's.
func (m *Mirror) requests(list corev1.ResourceList) bool {
	return maps.EqualFunc(m.Requests, list, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}
