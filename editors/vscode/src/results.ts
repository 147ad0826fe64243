// What `ptoc test --json` prints.

export interface TestResult {
  file: string;
  /** From 1. */
  line: number;
  result: "passed" | "failed" | "skipped";
  reason: string | null;
  ms: number;
}

/** The results by line; nothing if the text is none of its results. */
export function results(text: string): TestResult[] | undefined {
  try {
    const found: unknown = JSON.parse(text);
    const lines = (found as { lines?: unknown }).lines;
    return Array.isArray(lines) ? (lines as TestResult[]) : undefined;
  } catch {
    return undefined;
  }
}
