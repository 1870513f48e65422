package reflect_test

import (
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Generators of what a worker may send that lies, or is broken. They lean towards values that are
// nearly right.
var (
	anyCounter = rapid.OneOf(
		rapid.Int32Range(0, 6),
		rapid.Int32Range(0, 6),
		rapid.SampledFrom([]int32{-1, math.MinInt32, math.MaxInt32}),
	)
	anyTime = rapid.OneOf(
		rapid.Map(rapid.IntRange(-120, 120), func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }),
		rapid.Map(rapid.IntRange(-120, 120), func(m int) time.Time { return epoch.Add(time.Duration(m) * time.Minute) }),
		rapid.SampledFrom([]time.Time{{}, time.Unix(-1, 0), time.Unix(0, 999), epoch.AddDate(5000, 0, 0), epoch.Add(time.Nanosecond)}),
	)
	indexTexts = map[string]string{
		"many": strings.Repeat("0,", 100), "1 MB": strings.Repeat("9", 1<<20), "NUL": "1\x00",
	}
	anyIndexText = rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "0", "0-2", "0,1", "1-3,5", "0,2,4", "3", "5-7"}),
		rapid.SampledFrom([]string{
			"2,1", "1-1", "3-2", "-1", "1-", "0-2147483647", "99999999999999", "+1", "01", " 1", "1,,2", ",",
			"a", "0-1-2", "many", "1 MB", "NUL",
		}),
		rapid.StringMatching(`[0-9,-]{0,12}`),
	)
	anyConditionType = rapid.SampledFrom([]batchv1.JobConditionType{
		batchv1.JobSuspended, batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget,
		batchv1.JobSuccessCriteriaMet, "example.com/Custom", "",
	})
	anyConditionStatus = rapid.SampledFrom([]corev1.ConditionStatus{
		corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown, "", "rubbish",
	})
	texts   = map[string]string{"long": strings.Repeat("m", 40000), "no UTF-8": "\xff"}
	anyText = rapid.SampledFrom([]string{"", "BackoffLimitExceeded", "x", "long", "no UTF-8"})
)

// drawText draws the name of a text, so that failures stay readable.
func drawText(t *rapid.T, names *rapid.Generator[string], long map[string]string, label string) string {
	name := names.Draw(t, label)
	if text, ok := long[name]; ok {
		return text
	}
	return name
}

func anyIndexes(t *rapid.T, label string) string { return drawText(t, anyIndexText, indexTexts, label) }

func anyConditions(t *rapid.T) (list []batchv1.JobCondition) {
	if chance(t, 10, "5000 conditions") {
		return make([]batchv1.JobCondition, 5000)
	}
	for range rapid.IntRange(0, 4).Draw(t, "conditions") {
		list = append(list, batchv1.JobCondition{
			Type: anyConditionType.Draw(t, "type"), Status: anyConditionStatus.Draw(t, "status"),
			Reason: drawText(t, anyText, texts, "reason"), Message: drawText(t, anyText, texts, "message"),
			LastTransitionTime: metav1.NewTime(anyTime.Draw(t, "transition")),
		})
	}
	return list
}

func maybe[T any](t *rapid.T, label string, draw func(string) T) *T {
	if !chance(t, 60, label+" set") {
		return nil
	}
	return ptr(draw(label))
}

// anyStatus has no sense to it.
func anyStatus(t *rapid.T) (s batchv1.JobStatus) {
	for about := range fields {
		lieAbout(t, &s, about)
	}
	return s
}

const fields = 10

// lie changes one or two fields of a status that made sense.
func lie(t *rapid.T, s *batchv1.JobStatus) {
	for range rapid.IntRange(1, 2).Draw(t, "lies") {
		lieAbout(t, s, rapid.IntRange(0, fields-1).Draw(t, "about"))
	}
}

func lieAbout(t *rapid.T, s *batchv1.JobStatus, about int) {
	counter := func(label string) int32 { return anyCounter.Draw(t, label) }
	moment := func(label string) metav1.Time { return metav1.NewTime(anyTime.Draw(t, label)) }
	switch about {
	case 0:
		s.Active = counter("active")
	case 1:
		s.Succeeded = counter("succeeded")
	case 2:
		s.Failed = counter("failed")
	case 3:
		s.Ready, s.Terminating = maybe(t, "ready", counter), maybe(t, "terminating", counter)
	case 4:
		s.StartTime = maybe(t, "startTime", moment)
	case 5:
		s.CompletionTime = maybe(t, "completionTime", moment)
	case 6:
		s.CompletedIndexes = anyIndexes(t, "completedIndexes")
	case 7:
		s.FailedIndexes = maybe(t, "failedIndexes", func(label string) string { return anyIndexes(t, label) })
	case 8:
		s.Conditions = append(s.Conditions, anyConditions(t)...)
	case 9:
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a", "a"}}
	}
}
