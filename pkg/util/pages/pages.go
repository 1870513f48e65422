// Package pages reads lists page by page, in pages that are bounded by bytes.
package pages

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// shrinks is by what the limit is divided when a page is too large, and grows by what it's
	// multiplied after each page.
	shrinks, grows = 8, 2
	// fullPage is how many objects All asks for at once.
	fullPage = 500
)

// Read reads a page with the options' limit. A page that is too large is read again with fewer
// objects, as are those after it. An error remains when one object alone is too large.
func Read[P any](
	ctx context.Context, options *metav1.ListOptions, isTooLarge func(error) bool,
	list func(context.Context, metav1.ListOptions) (P, error),
) (P, error) {
	for {
		page, err := list(ctx, *options)
		if err == nil || options.Limit <= 1 || !isTooLarge(err) {
			return page, err
		}
		options.Limit = max(options.Limit/shrinks, 1)
	}
}

// All reads a list to its end, as it is now. Each object is added before the next page is read.
func All(
	ctx context.Context, options metav1.ListOptions, isTooLarge func(error) bool,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), add func(runtime.Object) error,
) (resourceVersion string, err error) {
	// API servers before 1.31 heed the limit only in a list without a resource version, and later
	// ones not in one of version 0.
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue = "", "", fullPage, ""
	for {
		page, err := Read(ctx, &options, isTooLarge, list)
		if err != nil {
			return "", err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return "", fmt.Errorf("read the answer to a list: %w", err)
		}
		isEmpty := true
		if err := meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
			isEmpty = false
			return add(item)
		}); err != nil {
			return "", fmt.Errorf("read the answer to a list: %w", err)
		}
		switch options.Continue = about.GetContinue(); {
		case options.Continue == "":
			return about.GetResourceVersion(), nil
		case isEmpty:
			return "", errors.New("the answer to a list is an empty page, after which there are more")
		}
		options.Limit = min(grows*options.Limit, fullPage)
	}
}
