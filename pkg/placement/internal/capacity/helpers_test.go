package capacity

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// nobody is the key of no Job.
var nobody types.NamespacedName

func shape(j *capacitytest.JobBuilder) *Shape { return ShapeOf(&j.Obj().Spec.Template) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
