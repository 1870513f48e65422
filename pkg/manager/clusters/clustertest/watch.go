package clustertest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
)

// bookmarkInterval is the API server's.
const bookmarkInterval = time.Minute

// stream is a watch.
type stream struct {
	cluster  *Cluster
	request  request
	matches  func(*stored) bool
	protobuf bool
	frames   io.Writer
	response http.ResponseWriter
}

// watch sends what the request selects: first, if it asks for that, all that there is.
func (c *Cluster) watch(w http.ResponseWriter, r request, cut <-chan struct{}) {
	matches, err := selectorOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	s := &stream{cluster: c, request: r, matches: matches, protobuf: readsProtobuf(r.Request), frames: w, response: w}
	content := runtime.ContentTypeJSON
	if s.protobuf {
		content = runtime.ContentTypeProtobuf + ";stream=watch"
		s.frames = protobuf.LengthDelimitedFramer.NewFrameWriter(w)
	}
	w.Header().Set("Content-Type", content)
	w.WriteHeader(http.StatusOK)
	if position, ok := s.begin(); ok {
		s.follow(position, cut)
	}
}

// begin sends what there is, or finds where the watch continues.
func (s *stream) begin() (position int, ok bool) {
	query := s.request.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	version, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64) // none: 0
	if version > 0 && !initial {
		position, ok = s.cluster.store.since(s.request.resource, version)
		if !ok {
			s.expired()
		}
		return position, ok
	}
	all, version, position := s.cluster.store.list(s.request.resource)
	for _, o := range all {
		if s.matches(o) {
			s.send(watch.Added, o)
		}
	}
	if initial {
		s.bookmark(version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return position, true
}

// follow sends changes until the client or the cluster ends that.
func (s *stream) follow(position int, cut <-chan struct{}) {
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	var end <-chan time.Time
	// none: 0
	if seconds, _ := strconv.Atoi(s.request.URL.Query().Get("timeoutSeconds")); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		end = timer.C
	}
	for {
		changes, version, more, known := s.cluster.store.after(s.request.resource, position)
		if !known {
			s.expired()
			return
		}
		for _, c := range changes {
			s.pass(c)
		}
		position += len(changes)
		// fails with the connection, as is noticed below
		_ = http.NewResponseController(s.response).Flush()
		select {
		case <-more:
		case <-bookmarks.C:
			if s.request.URL.Query().Get("allowWatchBookmarks") == "true" {
				s.bookmark(version, nil)
			}
		case <-cut:
			return
		case <-end:
			return
		case <-s.request.Context().Done():
			return
		}
	}
}

// pass sends a change as what it is for those that the watch selects.
func (s *stream) pass(c change) {
	before, after := c.before != nil && s.matches(c.before), c.after != nil && s.matches(c.after)
	switch {
	case after && before:
		s.send(watch.Modified, c.after)
	case after:
		s.send(watch.Added, c.after)
	case before && c.after == nil:
		s.send(watch.Deleted, c.before)
	case before:
		last := c.before.object() // as it was when it was selected, with the version of now
		s.send(watch.Deleted, newStored(c.before.kind, last, c.version))
	}
}

func (s *stream) send(event watch.EventType, o *stored) {
	if s.protobuf {
		s.frame(event, o.protobuf())
	} else {
		s.frame(event, o.json())
	}
}

func (s *stream) bookmark(version uint64, annotations map[string]string) {
	o := newObject(kinds[s.request.resource])
	o.SetAnnotations(annotations)
	s.send(watch.Bookmark, newStored(kinds[s.request.resource], o, version))
}

// expired says that the watch is behind what is remembered.
func (s *stream) expired() {
	status := apierrors.NewResourceExpired("too old resource version").ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	if !s.protobuf {
		text, _ := json.Marshal(status) // it's Kubernetes' own
		s.frame(watch.Error, text)
		return
	}
	raw, _ := status.Marshal() // it's Kubernetes' own
	s.frame(watch.Error, enveloped(metav1.Unversioned.WithKind("Status"), raw))
}

// frame writes one event. It fails with the connection only, which ends the request's context.
func (s *stream) frame(event watch.EventType, object []byte) {
	e := metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: object}}
	if !s.protobuf {
		_ = json.NewEncoder(s.frames).Encode(e)
		return
	}
	raw, _ := e.Marshal() // it's Kubernetes' own
	_, _ = s.frames.Write(raw)
}
