"""Names of the tiny catalog that the command line's tests crawl (see conftest)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITES = ("12315.com", "cca.org.cn", "315chn.com", "cgcr.com.cn", "t.163.com")
DEAD, REFUSED = "315chn.com", "cgcr.com.cn"
PRODUCTS = ("蒙牛早餐奶", "雀巢中老年奶粉")
