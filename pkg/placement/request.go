package placement

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// MaxMates bounds the kinds of Pods that are judged beside those of one Job.
const MaxMates = scheduling.MaxMates

// Mate stands for Pods of the Jobs of a group that are alike.
type Mate = scheduling.Mate

// Request asks for a place for one Job.
type Request struct {
	// Job as it is on the hub. Its status counts: completions reached need no Pods any more.
	Job *batchv1.Job
	// Mates are the other Jobs of the Job's group that must fit in the same cluster at the same time.
	// MaxMates kinds of their Pods are judged; those after them are left out.
	Mates []Mate
	// Recent are the paths of the recent fields of the Job's spec, as far as they are known.
	Recent []string
	// Selector over the clusters' labels. Nil matches all.
	Selector labels.Selector
	// Preference orders the clusters: one of an earlier step that fits is chosen whatever the costs
	// and scores. Its steps open as the Job waits, Since some time. Nil: all clusters are alike.
	Preference *preference.Preference
	Since      time.Time
	// Now is the time of the decision.
	Now time.Time
	// Namespace has the labels of the Job's namespace on the hub.
	Namespace labels.Set
	// NamespaceClosed: the namespace is not dispatched, so its Jobs are placed nowhere.
	NamespaceClosed bool
	// RoomNow: only clusters in which its Pods fit without new nodes, and without that others have to
	// go.
	RoomNow bool
	// Among restricts the Job to these clusters, in order of its queue's preference, which goes before
	// that of the Job: one that is named earlier and fits is chosen whatever the scores. Nil allows
	// all.
	Among []string
	// PassedOver names clusters that can't take this Job, each with the reason as it will read in
	// the explanation, such as "has a Job of this name that isn't ours".
	PassedOver map[string]string
	// Lightly: only if that takes little work. Otherwise the Decision is TooMuch.
	Lightly bool
	// Expired, if it isn't nil, says that no time is left to judge the Job by all that it has.
	Expired func() bool
}
