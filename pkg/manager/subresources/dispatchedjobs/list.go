package dispatchedjobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// List responds with the Jobs of a namespace, or of all.
func (s *Server) List(w http.ResponseWriter, r *http.Request, namespace string, o *Options) error {
	f, err := formOf(r.Header, r.URL.Query())
	if err != nil {
		return err
	}
	options := o.ListOptions
	options.Limit = pageSize
	if o.Limit > 0 {
		options.Limit = min(o.Limit, pageSize)
	}
	if options.ResourceVersion == "0" { // any version will do, but the hub would ignore the limit
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	defer s.useReasons(r.Context(), w)()
	out := &list{to: w, form: f, now: time.Now()}
	page, items, err := s.page(r.Context(), namespace, &options, out)
	if err != nil {
		return err
	}
	meta := metav1.ListMeta{ResourceVersion: page.ResourceVersion}
	if o.Limit > 0 {
		meta.Continue = page.Continue
	}
	if err := out.begin(meta); err != nil {
		return err
	}
	for {
		if err := out.add(items); err != nil {
			return err
		}
		if o.Limit > 0 || page.Continue == "" {
			return out.end()
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = page.Continue, "", ""
		if page, items, err = s.page(r.Context(), namespace, &options, out); err != nil {
			return fmt.Errorf("the list breaks off: %w", err)
		}
	}
}

// page reads a page, of fewer Jobs if it's too large, and makes items for the response of it. Of
// the page itself, nothing is held while the client reads.
func (s *Server) page(ctx context.Context, namespace string, options *metav1.ListOptions, out *list) (metav1.ListMeta, []byte, error) {
	release, err := s.turns.Acquire(ctx, namespace)
	if err != nil {
		return metav1.ListMeta{}, nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page, err := pages.Read(ctx, options, isTooLarge, s.hub.Jobs(namespace).List)
	if err != nil {
		return metav1.ListMeta{}, nil, fromHub(err)
	}
	items, err := s.items(out, page.Items)
	return page.ListMeta, items, err
}

func isTooLarge(err error) bool { return errors.Is(err, errTooLarge) }

// items are those Jobs that are Jobferry's, with commas between them.
func (s *Server) items(out *list, jobs []batchv1.Job) ([]byte, error) {
	var items []byte
	for i := range jobs {
		if !mirror.Managed(&jobs[i]) {
			continue
		}
		seen := s.view(&jobs[i])
		item, err := out.item(&seen, out.now)
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			items = append(items, ',')
		}
		items = append(items, content...)
	}
	return items, nil
}

// list writes a list or a table piece by piece.
type list struct {
	form

	to    http.ResponseWriter
	now   time.Time
	begun bool // an item was written
}

func (l *list) begin(meta metav1.ListMeta) error {
	items := "items"
	head := map[string]any{}
	if l.table {
		items = "rows"
		head["columnDefinitions"] = columns()
	}
	kind := l.kind("DispatchedJobList")
	head["kind"], head["apiVersion"], head["metadata"] = kind.Kind, kind.APIVersion, meta
	content, err := json.Marshal(head)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.to, `%s,%q:[`, content[:len(content)-1], items)
	return err
}

// add writes items.
func (l *list) add(items []byte) error {
	if len(items) == 0 {
		return nil
	}
	if l.begun {
		if _, err := l.to.Write([]byte{','}); err != nil {
			return err
		}
	}
	l.begun = true
	_, err := l.to.Write(items)
	return err
}

func (l *list) end() error {
	_, err := l.to.Write([]byte("]}\n"))
	return err
}
