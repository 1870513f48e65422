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
)

// none stands for what isn't known or doesn't apply.
const none = "-"

// barWidth is the number of signs between the brackets.
const barWidth = 10

// bar shows a share of a whole, as [####......].
func bar(used, total float64) string {
	share := 0.0
	if total > 0 {
		share = min(max(used/total, 0), 1)
	}
	filled := int(math.Round(share * barWidth))
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
}

// crowded and full are the shares from which a bar is coloured.
const (
	crowded = 0.8
	full    = 0.95
)

// usage is a bar and the numbers of one resource: requested of allocatable.
func usage(name corev1.ResourceName, requested, allocatable corev1.ResourceList) Cell {
	total, known := allocatable[name]
	if !known || total.IsZero() {
		return Text(none)
	}
	used := requested[name]
	cell := Text(fmt.Sprintf("%s %s/%s", bar(used.AsApproximateFloat64(), total.AsApproximateFloat64()), amount(name, used), amount(name, total)))
	switch share := used.AsApproximateFloat64() / total.AsApproximateFloat64(); {
	case share >= full:
		cell.Tone = Bad
	case share >= crowded:
		cell.Tone = Warn
	default:
		cell.Tone = Good
	}
	return cell
}

// amount is a quantity in few signs: 3.5, 24Gi.
func amount(name corev1.ResourceName, q resource.Quantity) string {
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

// short has one digit behind the point at most.
func short(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// age is the time since then, as kubectl says it.
func age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return none
	}
	return duration.HumanDuration(max(now.Sub(then.Time), 0))
}
