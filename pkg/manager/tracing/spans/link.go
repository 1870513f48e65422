package spans

import (
	"encoding/hex"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Link is a span of somebody else, such as of the pipeline that has created a Job.
type Link struct {
	Trace TraceID
	Span  SpanID
}

// LinkOf reads v1alpha1.AnnotationTraceParent of a Job. What isn't a W3C trace context of version
// 00 is no link.
func LinkOf(job *batchv1.Job) (link Link, ok bool) {
	text := job.Annotations[v1alpha1.AnnotationTraceParent]
	const length = len("00-") + 32 + len("-") + 16 + len("-01")
	if len(text) != length || text != strings.ToLower(text) {
		return Link{}, false
	}
	parts := strings.Split(text, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return Link{}, false
	}
	var flags [1]byte
	ok = decode(link.Trace[:], parts[1]) && decode(link.Span[:], parts[2]) && decode(flags[:], parts[3])
	if !ok || link.Trace == (TraceID{}) || link.Span == (SpanID{}) {
		return Link{}, false
	}
	return link, true
}

func decode(into []byte, text string) bool {
	if len(text) != hex.EncodedLen(len(into)) {
		return false
	}
	_, err := hex.Decode(into, []byte(text))
	return err == nil
}
