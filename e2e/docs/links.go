package docs

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
	// linkText is a link in a heading, of which only the text is in the anchor.
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// dropped are the characters of a heading that aren't in its anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	remote  = regexp.MustCompile(`^[a-z]+:`)
)

// Anchors are those of a page's headings, as GitHub makes them.
func Anchors(page string) map[string]bool {
	anchors, seen := map[string]bool{}, map[string]int{}
	for line := range proseLines(page) {
		found := heading.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text := dropped.ReplaceAllString(linkText.ReplaceAllString(found[1], "$1"), "")
		anchor := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), " ", "-")
		if n := seen[anchor]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", anchor, n)] = true
		}
		anchors[anchor] = true
		seen[anchor]++
	}
	return anchors
}

// Link leads to another place in the repository.
type Link struct {
	// Line is where it is, from 1.
	Line int
	// File is its path from the page's folder; empty: the page itself.
	File string
	// Anchor is that of a heading there; empty: none.
	Anchor string
}

// Links are those of a page that lead to files of the repository.
func Links(page string) []Link {
	var links []Link
	for line, number := range proseLines(page) {
		for _, found := range link.FindAllStringSubmatch(line, -1) {
			if target := found[1]; !remote.MatchString(target) {
				file, anchor, _ := strings.Cut(target, "#")
				links = append(links, Link{Line: number, File: file, Anchor: anchor})
			}
		}
	}
	return links
}

// proseLines are the lines outside of blocks, with their numbers from 1.
func proseLines(page string) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) {
		fenced := false
		number := 0
		for line := range strings.Lines(page) {
			number++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			} else if !fenced && !yield(strings.TrimRight(line, "\n"), number) {
				return
			}
		}
	}
}
