/* SPDX-License-Identifier: Apache-2.0 */
#include "report_read.h"

/* Colours are variables, so that light and dark differ in one place, and a class sets `color`
 * alone: marks, rings and legend keys take it from there. The categories begin with those of Okabe
 * and Ito, which people with colour-blindness can tell apart. */
const char *const report_style[] = {
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2330;--soft:#5b6575;"
    "--rule:#e3e6eb;--a:#2f6bdb;--b:#e0872f;--c:#b6bfcc;--plus:#2563d9;--minus:#e2711d;"
    "--r0:#1f9d6b;--r1:#a3b52a;--r2:#f0a11c;--r3:#d9363e;--k0:#0072b2;--k1:#e69f00;"
    "--k2:#009e73;--k3:#cc79a7;--k4:#d55e00;--k5:#56b4e9;--k6:#7f5fc4;--k7:#a8a015;"
    "--k8:#8c564b;--k9:#d62f54;--other:#98a1ae}\n",
    "@media(prefers-color-scheme:dark){:root{--page:#12151a;--card:#1a1e25;--ink:#e7eaf0;"
    "--soft:#9aa5b5;--rule:#2b313b;--a:#6fa0ff;--b:#f2a65a;--c:#4a5360;--plus:#6aa1ff;"
    "--minus:#ff9950;--r0:#3cc48d;--r1:#c3d34d;--r2:#ffc04d;--r3:#ff6b70;--k0:#4aa3df;"
    "--k1:#f2b632;--k2:#2fc79b;--k3:#e39bc4;--k4:#ff8a3d;--k5:#8fd0ff;--k6:#ab91ec;"
    "--k7:#d3cb45;--k8:#c08a7d;--k9:#ff6384;--other:#6d7786}}\n",
    "*{box-sizing:border-box}html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}\n",
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,"
    "-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;overflow-wrap:anywhere}\n",
    "main,header,footer{max-width:1080px;margin:0 auto;padding:0 20px}\n",
    "header{padding-top:40px}.eyebrow{margin:0 0 4px;color:var(--soft);font-size:.8rem;"
    "font-weight:600;letter-spacing:.08em;text-transform:uppercase}\n",
    "h1{font-size:1.8rem;line-height:1.2;margin:0 0 8px;letter-spacing:-.02em}h2{"
    "font-size:1.3rem;margin:48px 0 4px;letter-spacing:-.01em;scroll-margin-top:12px}h3{"
    "font-size:.95rem;margin:0 0 10px;font-weight:600}\n",
    "p{margin:0 0 14px;max-width:80ch}.lead{color:var(--soft);margin-bottom:18px}\n",
    "code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\n",
    "a{color:var(--a);text-decoration-thickness:1px;text-underline-offset:3px}\n",
    "a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--a);"
    "outline-offset:2px;border-radius:4px}\n",
    "nav ol{display:flex;flex-wrap:wrap;gap:6px 18px;list-style:none;padding:0;margin:0;"
    "font-size:.92rem}\n",
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;"
    "margin:0 0 18px;padding:0;list-style:none}\n",
    ".tiles li,figure,.card{background:var(--card);border:1px solid var(--rule);"
    "border-radius:10px}\n",
    ".tiles li{padding:14px 16px}.tiles b{display:block;font-size:1.7rem;line-height:1.15;"
    "font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}.tiles span{"
    "color:var(--soft);font-size:.85rem;line-height:1.35;display:block}\n",
    ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));"
    "gap:16px;margin:0 0 16px;align-items:stretch}\n",
    "figure{margin:0 0 16px;padding:18px;min-width:0}.grid>figure,.grid>.card{margin:0;"
    "min-width:0}\n",
    "figcaption{color:var(--soft);font-size:.88rem;line-height:1.45;margin-top:10px}\n",
    ".chart{display:block;width:100%;height:auto;overflow:visible}\n",
    ".chart text{font-size:12px;fill:var(--soft)}.chart .value{fill:var(--ink);font-weight:600}"
    ".chart .count{fill:var(--ink);font-size:11px}.chart .count.on{fill:var(--card)}"
    ".tried text{font-size:10.5px}.before{stroke:var(--ink);stroke-width:2.2;stroke-opacity:.85}\n",
    ".rule{stroke:var(--rule)}.base{stroke:var(--soft);stroke-opacity:.6}.whisker,.cap{"
    "stroke:var(--ink);stroke-width:1.4}.chance{stroke:var(--ink);stroke-dasharray:3 3;"
    "stroke-opacity:.8}\n",
    ".a{color:var(--a)}.b{color:var(--b)}.c{color:var(--c)}.plus{color:var(--plus)}.minus{"
    "color:var(--minus)}\n",
    ".r0{color:var(--r0)}.r1{color:var(--r1)}.r2{color:var(--r2)}.r3{color:var(--r3)}.r4,"
    ".k-other{color:var(--other)}\n",
    ".k0{color:var(--k0)}.k1{color:var(--k1)}.k2{color:var(--k2)}.k3{color:var(--k3)}.k4{"
    "color:var(--k4)}.k5{color:var(--k5)}.k6{color:var(--k6)}.k7{color:var(--k7)}.k8{"
    "color:var(--k8)}.k9{color:var(--k9)}\n",
    ".bar,.rank-bar,.trial,.cell,.confusion-cell,.point{fill:currentColor}.bar,.rank-bar,"
    ".trial{rx:2px}.bar:hover,.rank-bar:hover,.trial:hover{fill-opacity:.75}\n",
    ".trace{fill:none;stroke:var(--a);stroke-width:2;stroke-linejoin:round}.spectrum-point,"
    ".curve-point{fill:var(--card);stroke:var(--a);stroke-width:1.6}.spectrum-point:hover,"
    ".curve-point:hover{fill:var(--a)}\n",
    ".pair-line.many{stroke-opacity:.17}.pair-line{stroke:var(--soft);stroke-opacity:.38;stroke-"
    "width:.8}.point{fill-opacity:.9;"
    "stroke:var(--card);stroke-width:.7}.point.y{fill:var(--card);fill-opacity:.55;"
    "stroke:currentColor;stroke-width:1.5}.point:hover{stroke:var(--ink);stroke-width:2.2;"
    "fill-opacity:1}\n",
    ".pair{fill:none;stroke:var(--ink);stroke-opacity:.55;stroke-width:.8;pointer-events:none}"
    ".cell:hover,.confusion-cell:hover{stroke:var(--ink);stroke-width:1.5}\n",
    ".legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:10px 0 0;"
    "padding:0;font-size:.85rem;color:var(--soft)}.wide .legend{margin:0 0 12px}.legend li{"
    "display:flex;align-items:center;gap:7px}\n",
    ".key{display:inline-block;width:11px;height:11px;border-radius:3px;flex:none;"
    "background:currentColor}.key.line,.key.dash{height:0;width:16px;"
    "border-top:2px solid var(--ink);border-radius:0;background:none}.key.dash{"
    "border-top-style:dashed}.key.before{height:0;width:16px;border-top:3px solid var(--ink);"
    "border-radius:0;background:none}.key.outline{border:1.5px solid var(--ink);background:none}\n",
    ".mark{width:12px;height:12px;fill:var(--soft);flex:none}.mark.y{fill:none;"
    "stroke:var(--soft);stroke-width:1.6}\n",
    "table{border-collapse:collapse;width:100%;font-size:.88rem;"
    "font-variant-numeric:tabular-nums}th,td{text-align:left;padding:6px 14px 6px 0;"
    "border-bottom:1px solid var(--rule);vertical-align:top}th{color:var(--soft);"
    "font-weight:500}td.n,th.n{text-align:right;white-space:nowrap}td.n+td,th.n+th{"
    "padding-left:12px}tr>:last-child{padding-right:2px}tbody tr:last-child>*{border-bottom:0}\n",
    ".scroll{overflow-x:auto}.scroll th{white-space:nowrap}.card{padding:16px 18px;margin:0 0 "
    "16px}.card h3+p,.note{"
    "color:var(--soft);font-size:.88rem}\n",
    "details{margin:0 0 16px}summary{cursor:pointer;color:var(--a);font-size:.92rem;"
    "padding:4px 0}details[open] summary{margin-bottom:8px}\n",
    ".note{margin:12px 0 "
    "0}footer{color:var(--soft);font-size:.85rem;padding-top:28px;padding-bottom:48px}\n",
    "@media(max-width:520px){main,header,footer{padding-left:14px;padding-right:14px}header{"
    "padding-top:24px}figure,.card{padding:14px 12px}.tiles{grid-template-columns:1fr 1fr}"
    ".tiles li{padding:12px}.tiles b{font-size:1.4rem}.chart text{font-size:14px}.chart .count{"
    "font-size:12px}.tried text{font-size:10.5px}th,td{padding-right:10px}}\n",
    "@media print{:root{--page:#fff}body{font-size:11pt}nav,summary{display:none}figure,.card,"
    ".tiles li{break-inside:avoid}h2{break-after:avoid}*{-webkit-print-color-adjust:exact;"
    "print-color-adjust:exact}}\n",
    NULL};
