package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// barWidth is the number of characters between the brackets.
const barWidth = 10

// bar draws a share of a whole, as [####......].
func bar(share float64) string {
	filled := int(math.Round(min(max(share, 0), 1) * barWidth))
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
}

// usage draws a bar and the numbers of one resource of a worker: requested of allocatable.
func usage(w *v1alpha1.WorkerCluster, name corev1.ResourceName) Cell {
	total, known := w.Status.Allocatable[name]
	if !known || total.IsZero() {
		return Cell{Text: none}
	}
	used := w.Status.Requested[name]
	share := used.AsApproximateFloat64() / total.AsApproximateFloat64()
	return Cell{fmt.Sprintf("%s %s/%s", bar(share), Amount(name, used), Amount(name, total)), Pressure(share)}
}

// Pressure is the tone of a share of a resource that is in use.
func Pressure(share float64) string {
	switch {
	case share >= 0.95:
		return toneBad
	case share >= 0.8:
		return toneWarn
	default:
		return toneGood
	}
}

// Amount rounds a quantity to a short text: 3.5, 24Gi.
func Amount(name corev1.ResourceName, q resource.Quantity) string {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return bytes(q.AsApproximateFloat64())
	default:
		return short(q.AsApproximateFloat64())
	}
}

func bytes(n float64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	return short(n) + units[i]
}

// short rounds to one digit after the point.
func short(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// age is the time since then, in kubectl's format.
func age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return none
	}
	return duration.HumanDuration(max(now.Sub(then.Time), 0))
}
